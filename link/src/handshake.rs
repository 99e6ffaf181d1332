//! The handshake on a connection: sends and reads what [`crate::hello`] defines. Callers bound its time.

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::hello::{HELLO_BYTES, Hello, WELCOME_BYTES, Welcome};

/// Opens a connection to `address`, from the local address `from` if there is one: sends `ours` and `rest`, what the
/// protocol's Hello has beside, and reads the answer. `Err` inside has the reason of a refusal.
///
/// # Errors
///
/// The connection failed.
pub async fn connect(
    address: &str,
    from: Option<IpAddr>,
    ours: Hello,
    rest: &[u8],
) -> io::Result<Result<TcpStream, String>> {
    let mut stream = match from {
        None => TcpStream::connect(address).await?,
        Some(from) => connect_from(from, address).await?,
    };
    stream.set_nodelay(true)?;
    stream.write_all(&[&ours.encode(), rest].concat()).await?;
    let mut head = [0; WELCOME_BYTES];
    stream.read_exact(&mut head).await?;
    let len = match Welcome::decode_head(&head, ours) {
        Ok(0) => return Ok(Ok(stream)),
        Ok(len) => len,
        Err(why) => return Ok(Err(why)),
    };
    let mut why = vec![0; len];
    stream.read_exact(&mut why).await?;
    Ok(Err(String::from_utf8_lossy(&why).into_owned()))
}

/// Connects from the local address `from` to the first address of `to` that answers.
async fn connect_from(from: IpAddr, to: &str) -> io::Result<TcpStream> {
    let mut failure =
        io::Error::new(io::ErrorKind::AddrNotAvailable, format!("{to} has no address of {from}'s family"));
    for to in tokio::net::lookup_host(to).await?.filter(|to| to.is_ipv4() == from.is_ipv4()) {
        let socket = if from.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.bind((from, 0).into())?;
        match socket.connect(to).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Reads the Hello of a connection that was accepted; `None` if it speaks another protocol than `ours`, and so could
/// not read an answer.
///
/// # Errors
///
/// The connection failed.
pub async fn read_hello(stream: &mut TcpStream, ours: Hello) -> io::Result<Option<Hello>> {
    stream.set_nodelay(true)?;
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).await?;
    Ok(ours.decode_other(&hello))
}

/// Answers a Hello.
///
/// # Errors
///
/// The connection failed.
pub async fn answer_hello(stream: &mut TcpStream, ours: Hello, welcome: &Welcome) -> io::Result<()> {
    stream.write_all(&welcome.encode(ours)).await
}
