//! The handshake on a connection: sends and reads what [`crate::hello`] defines. Callers bound its time.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::hello::{HELLO_BYTES, Hello, WELCOME_BYTES, Welcome};

/// Opens a connection to `address`: sends `ours` and `rest`, what the protocol's Hello has beside, and reads the
/// answer. `Err` inside has the reason of a refusal.
///
/// # Errors
///
/// The connection failed.
pub async fn connect(address: &str, ours: Hello, rest: &[u8]) -> io::Result<Result<TcpStream, String>> {
    let mut stream = TcpStream::connect(address).await?;
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
