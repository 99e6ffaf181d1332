//! The handshake: both sides of a new connection check version and cluster before anything else.
//!
//! The side that connects sends a [`Hello`], the other side answers with a [`Welcome`]. Other protocols between nodes
//! may use the handshake too: each is a [`Protocol`] with a magic of its own, whose first byte tells the connections of
//! one port apart. It differs from the first byte of an HTTP/2 connection (`P`) and of a TLS one (0x16).

use std::fmt;

/// The first byte of every link.
pub const FIRST_BYTE: u8 = LINK.magic[0];
/// The version of the handshake and of the frames.
pub const VERSION: u32 = 1;
/// Bytes of an encoded [`Hello`].
pub const HELLO_BYTES: usize = 20;
/// Bytes of an encoded [`Welcome`] before its text.
pub const WELCOME_BYTES: usize = 22;
/// The most bytes of the text of a refusal.
pub const WHY_BYTES_MAX: usize = 1024;

/// A protocol whose connections begin with this handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// The first bytes of its connections.
    pub magic: [u8; 8],
    /// The name in refusals.
    pub name: &'static str,
    /// The version that is spoken here, of the handshake and of all that follows.
    pub version: u32,
}

const LINK: Protocol = Protocol { magic: *b"\xc0rtdlink", name: "link", version: VERSION };

/// The identity of a cluster: nodes of different clusters refuse each other. Written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterTag(u64);

impl ClusterTag {
    /// Wraps the cluster's id.
    pub const fn new(raw: u64) -> ClusterTag {
        ClusterTag(raw)
    }
}

impl fmt::Display for ClusterTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What the side that connects says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// What it speaks.
    pub protocol: Protocol,
    /// The version that it speaks.
    pub version: u32,
    /// Its cluster.
    pub cluster: ClusterTag,
}

impl Hello {
    /// The Hello of a link of this version.
    pub const fn new(cluster: ClusterTag) -> Hello {
        Hello::of(LINK, cluster)
    }

    /// The Hello of a connection of another protocol.
    pub const fn of(protocol: Protocol, cluster: ClusterTag) -> Hello {
        Hello { protocol, version: protocol.version, cluster }
    }

    /// The bytes on the wire.
    pub fn encode(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let (magic, rest) = bytes.split_at_mut(self.protocol.magic.len());
        let (version, cluster) = rest.split_at_mut(4);
        magic.copy_from_slice(&self.protocol.magic);
        version.copy_from_slice(&self.version.to_be_bytes());
        cluster.copy_from_slice(&self.cluster.0.to_be_bytes());
        bytes
    }

    /// Reads the Hello of another side; `None` if it speaks another protocol than this one.
    pub fn decode_other(self, bytes: &[u8; HELLO_BYTES]) -> Option<Hello> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (cluster, _) = rest.split_first_chunk::<8>()?;
        let (version, cluster) = (u32::from_be_bytes(*version), ClusterTag(u64::from_be_bytes(*cluster)));
        let protocol = self.protocol;
        (*magic == protocol.magic).then_some(Hello { protocol, version, cluster })
    }

    /// Why a node that would say `ours` refuses this Hello.
    pub fn objection(self, ours: Hello) -> Option<String> {
        if self.version != ours.version {
            return Some(format!(
                "{} version {} is not spoken here, {} is",
                ours.protocol.name, self.version, ours.version
            ));
        }
        let text = || format!("this node belongs to cluster {}, the request to cluster {}", ours.cluster, self.cluster);
        (self.cluster != ours.cluster).then(text)
    }
}

/// The answer to a [`Hello`]: `Err` with the reason if the connection is refused. What was sent with it was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome(pub Result<(), String>);

impl Welcome {
    /// The bytes on the wire. A long reason is cut.
    pub fn encode(&self, ours: Hello) -> Vec<u8> {
        let why = self.0.as_ref().err().map_or("", String::as_str);
        let cut = why.floor_char_boundary(WHY_BYTES_MAX);
        let why = why.get(..cut).unwrap_or_default();
        let mut bytes = ours.encode().to_vec();
        bytes.extend_from_slice(&u16::try_from(why.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(why.as_bytes());
        bytes
    }

    /// The length of the text that follows `head`. Fails if the other side speaks another protocol.
    ///
    /// # Errors
    ///
    /// What is wrong with `head`, or why the connection is not possible although the other side did not say so.
    pub fn decode_head(head: &[u8; WELCOME_BYTES], ours: Hello) -> Result<usize, String> {
        let foreign = || format!("it does not speak the protocol ({})", ours.protocol.name);
        let (hello, len) = head.split_first_chunk::<HELLO_BYTES>().ok_or_else(foreign)?;
        let theirs = ours.decode_other(hello).ok_or_else(foreign)?;
        let len = len.first_chunk::<2>().map_or(0, |len| usize::from(u16::from_be_bytes(*len)));
        match theirs.objection(ours) {
            _ if len > WHY_BYTES_MAX => Err(foreign()),
            // Their own text follows, and it says more.
            Some(why) if len == 0 => Err(why),
            _ => Ok(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let hello = Hello::new(ClusterTag::new(0x0102));
        assert_eq!(hello.encode(), *b"\xc0rtdlink\0\0\0\x01\0\0\0\0\0\0\x01\x02");
        assert_eq!(hello.decode_other(&hello.encode()), Some(hello));
        assert_eq!(hello.decode_other(b"PRI * HTTP/2.0\r\n\r\nSM"), None);
        assert_eq!(Welcome(Ok(())).encode(hello), b"\xc0rtdlink\0\0\0\x01\0\0\0\0\0\0\x01\x02\0\0");
        let refused = Welcome(Err("no".to_owned())).encode(hello);
        assert_eq!(refused, b"\xc0rtdlink\0\0\0\x01\0\0\0\0\0\0\x01\x02\0\x02no");
        assert_eq!(Welcome::decode_head(refused.first_chunk().unwrap(), hello), Ok(2));
    }

    #[test]
    fn other_clusters_and_versions_are_refused_on_both_sides() {
        let ours = Hello::new(ClusterTag::new(1));
        let foreign = Hello::new(ClusterTag::new(2));
        let newer = Hello { version: VERSION + 1, ..ours };
        assert_eq!(ours.objection(ours), None);
        let why = foreign.objection(ours).unwrap();
        assert_eq!(why, "this node belongs to cluster 0000000000000001, the request to cluster 0000000000000002");
        assert_eq!(newer.objection(ours).unwrap(), "link version 2 is not spoken here, 1 is");
        for theirs in [foreign, newer] {
            let head = Welcome(Ok(())).encode(theirs);
            assert!(Welcome::decode_head(head.first_chunk().unwrap(), ours).is_err(), "{theirs:?}");
        }
        let long = Welcome(Err("é".repeat(WHY_BYTES_MAX))).encode(ours);
        assert_eq!(Welcome::decode_head(long.first_chunk().unwrap(), ours), Ok(WHY_BYTES_MAX));
        let mut garbage = Welcome(Ok(())).encode(ours);
        garbage[20] = 0xff;
        assert!(Welcome::decode_head(garbage.first_chunk().unwrap(), ours).is_err());
    }
}
