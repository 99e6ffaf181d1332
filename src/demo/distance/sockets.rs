//! TCP sockets whose local address is chosen before they connect, which the standard library does not offer.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// The address of the first place. The others follow.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);

/// The local address of the connections that the node at `place` opens. It tells the proxies where they come from.
pub(super) fn address_of(place: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(FIRST.to_bits() + place as u32)
}

/// The place of a connection from `address`, of so many; `None` if it is not a node's.
pub(super) fn place_of(address: SocketAddr, places: usize) -> Option<usize> {
    (0..places).find(|place| address.ip() == address_of(*place))
}

/// Connects, from a local address if one is given. Waits until the connection is open.
pub(super) fn connect(from: Option<Ipv4Addr>, to: SocketAddr) -> io::Result<TcpStream> {
    begin(from, to, SocketFlags::CLOEXEC)
}

/// Begins to connect. The socket does not block, and is writable once it is open or has failed
/// ([`TcpStream::take_error`]).
pub(super) fn begin_to_connect(to: SocketAddr) -> io::Result<TcpStream> {
    begin(None, to, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
}

fn begin(from: Option<Ipv4Addr>, to: SocketAddr, flags: SocketFlags) -> io::Result<TcpStream> {
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    if let Some(from) = from {
        rustix::net::bind(&socket, &SocketAddrV4::new(from, 0))?;
    }
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_shows_its_place() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        for (from, place) in [(Some(address_of(2)), Some(2)), (Some(address_of(3)), None), (None, None)] {
            let _stream = connect(from, to).unwrap();
            let (_, address) = listener.accept().unwrap();
            assert_eq!(place_of(address, 3), place);
        }
    }
}
