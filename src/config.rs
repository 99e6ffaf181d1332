//! The configuration of a node, validated before anything is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use engine::log::{Compression, LogOptions};
use raftstore::transport::ClusterId;
/// The configuration of a node. Once its ports are bound, the addresses hold the actual ports.
#[derive(Clone, Debug)]
pub(crate) struct NodeConfig {
    /// The data directory.
    pub(crate) data: PathBuf,
    /// The listen address for other nodes.
    pub(crate) listen: SocketAddr,
    /// Whether to listen on any free port if the port of `listen` is in use.
    pub(crate) fall_back_to_any_port: bool,
    /// The address at which other nodes reach this one.
    pub(crate) advertise: HostPort,
    /// The local address of connections to other nodes, if one was given.
    pub(crate) connect_from: Option<IpAddr>,
    /// The listen address for PostgreSQL clients.
    pub(crate) pg: SocketAddr,
    /// The listen address for metrics and health checks.
    pub(crate) http: Option<SocketAddr>,
    /// The size of the block cache.
    pub(crate) cache_bytes: u64,
    /// How long a request to a region that cannot be reached is retried, counted from its first failure.
    pub(crate) retry_for: Duration,
    /// How often grants of regions that other nodes read are pushed to them; zero for never.
    pub(crate) push_interval: Duration,
    /// The fraction of the reads at replicas that are compared with the leader's.
    pub(crate) shadow_reads: f64,
    /// The most advisory locks of the node's sessions.
    pub(crate) max_advisory_locks: u32,
    /// The most bytes that one transaction may write.
    pub(crate) max_transaction_size: u64,
    /// The settings of the Raft log.
    pub(crate) raft_log: RaftLogConfig,
    /// How the node becomes a member of its cluster.
    pub(crate) membership: Membership,
    /// The location of the node.
    pub(crate) locality: Locality,
    /// The cluster it must belong to, if `--cluster-id` was given.
    pub(crate) cluster_id: Option<ClusterId>,
}

/// The settings of the Raft log that have flags. The others have the engine's defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RaftLogConfig {
    /// The size at which a file is sealed.
    pub(crate) file_bytes: u64,
    /// The size above which live data is rewritten to free files.
    pub(crate) purge_bytes: u64,
    /// The size of the block cache; 0 disables it.
    pub(crate) cache_bytes: u64,
    /// The compression of blocks.
    pub(crate) compression: Compression,
    /// The alignment of synced writes.
    pub(crate) align_bytes: u64,
    /// Bytes scrubbed for damage per second, by the store; 0 disables scrubbing.
    pub(crate) scrub_bytes: u64,
}

impl RaftLogConfig {
    /// The engine's options.
    pub(crate) fn options(&self) -> LogOptions {
        LogOptions {
            file_bytes: self.file_bytes,
            purge_threshold: self.purge_bytes,
            cache_bytes: usize::try_from(self.cache_bytes).unwrap_or(usize::MAX),
            compression: self.compression,
            align_bytes: self.align_bytes,
            ..LogOptions::default()
        }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let ensure =
            |holds: bool, flag, bounds| if holds { Ok(()) } else { Err(ConfigError::OutOfBounds { flag, bounds }) };
        ensure((64 << 10..=1 << 30).contains(&self.file_bytes), "--raft-log-file-size", "64KiB to 1GiB")?;
        ensure(self.purge_bytes <= 1 << 50, "--raft-log-purge", "at most 1048576GiB")?;
        let aligned = self.align_bytes.is_power_of_two() && (8..=64 << 10).contains(&self.align_bytes);
        ensure(aligned, "--raft-log-align", "a power of two from 8 to 64KiB")
    }
}

/// How a node becomes a member of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// The node is the whole cluster and initialises itself.
    SingleNode,
    /// The node joins a cluster through these addresses, or is initialised with them.
    Join(Vec<HostPort>),
}

/// An invalid combination of flags; printed as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Nothing is encrypted yet, so an address beyond loopback requires `--insecure`.
    #[error(
        "{flag} {addr} can be reached by other machines and nothing is encrypted or authenticated yet; \
         use a loopback address, or pass --insecure"
    )]
    NotLoopback { flag: &'static str, addr: SocketAddr },
    /// The advertised address is a wildcard.
    #[error("{flag} {addr} is no address that other nodes can dial; give --advertise HOST:PORT")]
    NotDialable { flag: &'static str, addr: HostPort },
    /// Two servers share an address.
    #[error("{a} and {b} are both {addr}")]
    SameAddress { a: &'static str, b: &'static str, addr: SocketAddr },
    /// A number that the engine would reject.
    #[error("{flag} must be {bounds}")]
    OutOfBounds { flag: &'static str, bounds: &'static str },
    /// A node is listed twice.
    #[error("--join names {0} twice")]
    JoinTwice(HostPort),
}

impl NodeConfig {
    /// Checks the combination of all flags. `insecure` allows addresses beyond loopback.
    pub(crate) fn validate(&self, insecure: bool) -> Result<(), ConfigError> {
        self.raft_log.validate()?;
        // A default port yields to the ports that were given.
        let listen = (!self.fall_back_to_any_port).then_some(self.listen);
        let named = [("--listen", listen), ("--pg", Some(self.pg)), ("--http", self.http)];
        let addrs: Vec<(&'static str, SocketAddr)> =
            named.iter().filter_map(|(flag, addr)| addr.map(|addr| (*flag, addr))).collect();
        for (i, (flag, addr)) in addrs.iter().enumerate() {
            if !insecure && !addr.ip().is_loopback() {
                return Err(ConfigError::NotLoopback { flag, addr: *addr });
            }
            for (other, other_addr) in &addrs[..i] {
                if addr == other_addr && addr.port() != 0 {
                    return Err(ConfigError::SameAddress { a: other, b: flag, addr: *addr });
                }
            }
        }
        // A single node may listen on any port: no other node needs to know it before it is bound.
        let is_single_node = self.membership == Membership::SingleNode;
        if self.advertise.is_wildcard() || (self.advertise.is_any_port() && !is_single_node) {
            let flag = if self.advertises_listen() { "--listen" } else { "--advertise" };
            return Err(ConfigError::NotDialable { flag, addr: self.advertise.clone() });
        }
        if let Membership::Join(join) = &self.membership {
            for (i, host) in join.iter().enumerate() {
                if join[..i].contains(host) {
                    return Err(ConfigError::JoinTwice(host.clone()));
                }
            }
        }
        Ok(())
    }

    /// Whether the advertised address is the listen address.
    pub(crate) fn advertises_listen(&self) -> bool {
        self.advertise == HostPort::from(self.listen)
    }
}

/// A syntactically valid host and port, as given. A host name is resolved when it is dialled, because its address may
/// change or be unknown for a while.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostPort {
    text: String,
}

impl HostPort {
    /// The text `host:port`, as given.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the host is a wildcard address, which cannot be dialled.
    fn is_wildcard(&self) -> bool {
        self.text.parse::<SocketAddr>().is_ok_and(|addr| addr.ip().is_unspecified())
    }

    /// Whether the port is 0: the system chooses it when it is bound.
    fn is_any_port(&self) -> bool {
        self.text.ends_with(":0")
    }
}

impl From<SocketAddr> for HostPort {
    fn from(addr: SocketAddr) -> HostPort {
        HostPort { text: addr.to_string() }
    }
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<HostPort, String> {
        let Some((host, port)) = text.rsplit_once(':') else {
            return Err(format!("{text:?} is not of the form HOST:PORT"));
        };
        if !is_host(host) {
            return Err(format!("{host:?} is no host name, IPv4 address or [IPv6 address]"));
        }
        if !port.bytes().all(|b| b.is_ascii_digit()) || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return Err(format!("{port:?} is no port, 1 to 65535"));
        }
        Ok(HostPort { text: text.to_string() })
    }
}

fn is_host(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)),
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The location of a node: ordered key=value tiers from wide to narrow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Locality {
    tiers: Vec<(String, String)>,
}

impl FromStr for Locality {
    type Err = String;

    fn from_str(text: &str) -> Result<Locality, String> {
        let mut tiers = Vec::new();
        let mut seen = BTreeMap::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("expected KEY=VALUE, found {part:?}"));
            };
            let plain = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            if !plain(key) || !plain(value) {
                return Err(format!("{part:?}: keys and values are letters, digits, '-', '_' and '.'"));
            }
            if seen.insert(key, ()).is_some() {
                return Err(format!("{key} is given twice"));
            }
            tiers.push((key.to_string(), value.to_string()));
        }
        Ok(Locality { tiers })
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.tiers.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{key}={value}")?;
        }
        Ok(())
    }
}

/// A bandwidth in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bandwidth {
    bits: u64,
}

impl Bandwidth {
    /// In bits per second.
    pub(crate) fn bits(self) -> u64 {
        self.bits
    }

    /// How long it takes to send `bytes`.
    pub(crate) fn time_of(self, bytes: usize) -> Duration {
        let nanos = bytes as u128 * 8 * 1_000_000_000 / u128::from(self.bits);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Parses a bandwidth from 1Mbit to 100Gbit: `297Mbit`.
impl FromStr for Bandwidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Bandwidth, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| "expected a bandwidth such as 297Mbit".to_string())?;
        let unit_bits: u64 = match unit {
            "Mbit" => 1_000_000,
            "Gbit" => 1_000_000_000,
            _ => return Err(format!("unknown unit {unit:?}; use Mbit or Gbit")),
        };
        let bits = number.saturating_mul(unit_bits);
        let is_valid = (1_000_000..=100_000_000_000).contains(&bits);
        is_valid.then_some(Bandwidth { bits }).ok_or_else(|| "must be from 1Mbit to 100Gbit".to_string())
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s", self.bits / 1_000_000)
    }
}

/// A round-trip time between regions: of a pair that is named as `A-B`, or of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoundTrip {
    /// The text `A-B`; `None` for all pairs that are not named.
    pub(crate) pair: Option<String>,
    /// The time, from 1 ms to 300 ms: elections begin after a second of silence.
    pub(crate) time: Duration,
}

/// Parses `28ms` or `A-B=230ms`.
impl FromStr for RoundTrip {
    type Err = String;

    fn from_str(text: &str) -> Result<RoundTrip, String> {
        let (pair, time) = match text.rsplit_once('=') {
            Some((pair, time)) => (Some(pair.to_string()), time),
            None => (None, text),
        };
        match parse_time(time) {
            Ok(time) if time <= Duration::from_millis(300) => Ok(RoundTrip { pair, time }),
            _ => Err("expected a round trip from 1ms to 300ms".to_string()),
        }
    }
}

/// Parses a compression: `none`, `lz4`, `zstd`, or with a level `zstd:5`.
pub(crate) fn parse_compression(text: &str) -> Result<Compression, String> {
    /// zstd's own default.
    const DEFAULT_LEVEL: i32 = 3;
    match text.split_once(':').unwrap_or((text, "")) {
        ("none", "") => Ok(Compression::Off),
        ("lz4", "") => Ok(Compression::Lz4),
        ("zstd", "") if text == "zstd" => Ok(Compression::Zstd(DEFAULT_LEVEL)),
        ("zstd", level) => match level.parse() {
            Ok(level @ 1..=19) => Ok(Compression::Zstd(level)),
            _ => Err(format!("the level of zstd is 1 to 19, not {level:?}")),
        },
        _ => Err("expected none, lz4, zstd or zstd:LEVEL".to_string()),
    }
}

/// Parses a size of at least one mebibyte.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    parse_bytes(text)
        .and_then(|bytes| if bytes >= 1 << 20 { Ok(bytes) } else { Err("must be at least 1MiB".to_string()) })
}

/// Parses the size of the largest transaction, from 1 MiB to 4 GiB.
pub(crate) fn parse_transaction_size(text: &str) -> Result<u64, String> {
    let is_valid = |bytes: &u64| (1 << 20..=4 << 30).contains(bytes);
    parse_bytes(text)
        .and_then(|bytes| Some(bytes).filter(is_valid).ok_or_else(|| "must be from 1MiB to 4GiB".to_owned()))
}

/// Parses a size in bytes with an optional unit: `4096`, `64KiB`, `512MiB`, `2GiB`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "expected a size such as 512MiB".to_string())?;
    let shift = match unit {
        "" | "B" => 0,
        "KiB" | "K" => 10,
        "MiB" | "M" => 20,
        "GiB" | "G" => 30,
        _ => return Err(format!("unknown unit {unit:?}; use KiB, MiB or GiB")),
    };
    number.checked_mul(1 << shift).ok_or_else(|| "is too large".to_string())
}

/// Parses a time from a millisecond to an hour, with its unit: `500ms`, `20s`, `2min`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "expected a time such as 20s".to_string())?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        _ => return Err(format!("unknown unit {unit:?}; use ms, s or min")),
    };
    let time = Duration::from_millis(number.saturating_mul(unit_ms));
    let is_valid = (Duration::from_millis(1)..=Duration::from_secs(3_600)).contains(&time);
    is_valid.then_some(time).ok_or_else(|| "must be from 1ms to 60min".to_string())
}

/// Parses a pause up to a second: as [`parse_time`], or `0` for none.
pub(crate) fn parse_pause(text: &str) -> Result<Duration, String> {
    if text.trim_end_matches("ms") == "0" {
        return Ok(Duration::ZERO);
    }
    let pause = parse_time(text).map_err(|why| format!("{why}, or 0"))?;
    (pause <= Duration::from_secs(1)).then_some(pause).ok_or_else(|| "must be 0, or from 1ms to 1s".to_string())
}

/// Parses a fraction from 0 to 1.
pub(crate) fn parse_fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|fraction| (0.0..=1.0).contains(fraction));
    fraction.ok_or_else(|| "must be from 0 to 1".to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The defaults of the flags, which a test in `cli.rs` compares with these.
    pub(crate) fn raft_log() -> RaftLogConfig {
        RaftLogConfig {
            file_bytes: 64 << 20,
            purge_bytes: 1 << 30,
            cache_bytes: 16 << 20,
            compression: Compression::Lz4,
            align_bytes: 8,
            scrub_bytes: 1 << 20,
        }
    }

    fn config(listen: &str, pg: &str) -> NodeConfig {
        let listen: SocketAddr = listen.parse().unwrap();
        NodeConfig {
            data: PathBuf::from("unused"),
            listen,
            fall_back_to_any_port: false,
            advertise: listen.into(),
            connect_from: None,
            pg: pg.parse().unwrap(),
            http: None,
            cache_bytes: 1 << 30,
            retry_for: Duration::from_secs(20),
            push_interval: Duration::from_millis(2),
            shadow_reads: 0.0,
            max_advisory_locks: 100_000,
            max_transaction_size: 256 << 20,
            raft_log: raft_log(),
            membership: Membership::SingleNode,
            locality: Locality::default(),
            cluster_id: None,
        }
    }

    #[test]
    fn addresses_beyond_loopback_need_insecure() {
        let open = config("10.0.0.1:1000", "127.0.0.1:1001");
        assert!(matches!(open.validate(false), Err(ConfigError::NotLoopback { flag: "--listen", .. })));
        assert_eq!(open.validate(true), Ok(()));
    }

    #[test]
    fn two_servers_cannot_share_a_port() {
        let same = config("127.0.0.1:1000", "127.0.0.1:1000");
        assert!(matches!(same.validate(false), Err(ConfigError::SameAddress { a: "--listen", b: "--pg", .. })));
        assert_eq!(NodeConfig { fall_back_to_any_port: true, ..same }.validate(false), Ok(()));
    }

    #[test]
    fn a_wildcard_needs_an_advertised_address() {
        let wild = config("0.0.0.0:1000", "127.0.0.1:1001");
        assert!(matches!(wild.validate(true), Err(ConfigError::NotDialable { flag: "--listen", .. })));
        let advertised = NodeConfig { advertise: "db1:1000".parse().unwrap(), ..wild.clone() };
        assert_eq!(advertised.validate(true), Ok(()));
        let still_wild = NodeConfig { advertise: "0.0.0.0:2000".parse().unwrap(), ..wild };
        assert!(matches!(still_wild.validate(true), Err(ConfigError::NotDialable { flag: "--advertise", .. })));
    }

    #[test]
    fn only_a_single_node_may_listen_on_any_port() {
        let single = config("127.0.0.1:0", "127.0.0.1:1001");
        assert_eq!(single.validate(false), Ok(()));
        let join = Membership::Join(vec!["127.0.0.1:1000".parse().unwrap()]);
        let error = NodeConfig { membership: join, ..single }.validate(false).unwrap_err();
        assert!(error.to_string().contains("--advertise"), "{error}");
    }

    #[test]
    fn join_lists_each_node_once() {
        let mut config = config("127.0.0.1:1000", "127.0.0.1:1001");
        let a: HostPort = "127.0.0.1:1000".parse().unwrap();
        config.membership = Membership::Join(vec![a.clone(), a.clone()]);
        assert_eq!(config.validate(false), Err(ConfigError::JoinTwice(a)));
    }

    #[test]
    fn host_and_port_are_parsed() {
        assert!("127.0.0.1:80".parse::<HostPort>().is_ok());
        assert!("[::1]:80".parse::<HostPort>().is_ok());
        assert!("db1.example.invalid:80".parse::<HostPort>().is_ok(), "names are not resolved here");
        for bad in
            ["", "127.0.0.1", ":80", "a:99999", "a:x", "a:0", "a:+1", "a:", "::1:80", "[::1:80", "a b:1", "a/b:1"]
        {
            assert!(bad.parse::<HostPort>().is_err(), "{bad}");
        }
    }

    #[test]
    fn localities_are_parsed() {
        let text = "region=eu-west,zone=a";
        assert_eq!(text.parse::<Locality>().unwrap().to_string(), text);
        for bad in ["region", "=x", "region=", "a=1,a=2", "a=b c"] {
            assert!(bad.parse::<Locality>().is_err(), "{bad}");
        }
    }

    /// The configuration accepts exactly what the engine accepts.
    #[test]
    fn raft_log_settings_have_the_engines_bounds() {
        let with = |set: fn(&mut RaftLogConfig)| {
            let mut raft_log = raft_log();
            set(&mut raft_log);
            let result = NodeConfig { raft_log, ..config("127.0.0.1:1", "127.0.0.1:2") }.validate(false);
            assert_eq!(result.is_ok(), raft_log.options().validate().is_ok(), "{raft_log:?}");
            result.err().map(|error| error.to_string())
        };
        assert_eq!(with(|_| ()), None);
        assert_eq!(with(|log| log.file_bytes = 64 << 10), None);
        assert_eq!(
            with(|log| log.file_bytes = (64 << 10) - 1),
            Some("--raft-log-file-size must be 64KiB to 1GiB".to_string())
        );
        assert_eq!(
            with(|log| log.file_bytes = (1 << 30) + 1),
            Some("--raft-log-file-size must be 64KiB to 1GiB".to_string())
        );
        assert_eq!(
            with(|log| log.purge_bytes = (1 << 50) + 1),
            Some("--raft-log-purge must be at most 1048576GiB".to_string())
        );
        assert_eq!(with(|log| log.align_bytes = 4096), None);
        assert!(with(|log| log.align_bytes = 24).is_some_and(|said| said.starts_with("--raft-log-align")));
        assert!(with(|log| log.align_bytes = 128 << 10).is_some());
        assert_eq!(with(|log| log.compression = Compression::Zstd(19)), None);
    }

    #[test]
    fn compressions_are_parsed() {
        for (text, parsed) in [
            ("none", Compression::Off),
            ("lz4", Compression::Lz4),
            ("zstd", Compression::Zstd(3)),
            ("zstd:1", Compression::Zstd(1)),
            ("zstd:19", Compression::Zstd(19)),
        ] {
            assert_eq!(parse_compression(text), Ok(parsed));
        }
        for bad in ["", "gzip", "lz4:1", "none:1", "zstd:", "zstd:0", "zstd:20", "zstd:x", "ZSTD"] {
            assert!(parse_compression(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bandwidths_are_parsed() {
        let bits = |text: &str| text.parse().map(Bandwidth::bits);
        assert_eq!([bits("297Mbit"), bits("100Gbit")], [Ok(297_000_000), Ok(100_000_000_000)]);
        assert_eq!("297Mbit".parse::<Bandwidth>().unwrap().to_string(), "297 Mbit/s");
        for bad in ["", "297", "Mbit", "0Mbit", "101Gbit", "-1Mbit", "1.5Gbit", "297MB", "99999999999999999999Gbit"] {
            assert!(bits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn round_trips_are_parsed() {
        let parsed = |text: &str| text.parse::<RoundTrip>().map(|parsed| (parsed.pair, parsed.time.as_millis()));
        assert_eq!(parsed("28ms"), Ok((None, 28)));
        assert_eq!(parsed("us-east-tokyo=230ms"), Ok((Some("us-east-tokyo".to_string()), 230)));
        for bad in ["", "0", "0ms", "28", "301ms", "1s", "a-b=", "a-b"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_parsed() {
        let ms = |text| parse_time(text).map(|time| time.as_millis());
        assert_eq!([ms("500ms"), ms("20s"), ms("2min")], [Ok(500), Ok(20_000), Ok(120_000)]);
        for bad in ["", "20", "s", "-1s", "1.5s", "20sec", "0s", "61min", "99999999999999999999s"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(parse_size("512MiB"), Ok(512 << 20));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!((parse_bytes("0"), parse_bytes("8"), parse_bytes("64K")), (Ok(0), Ok(8), Ok(64 << 10)));
        assert!(parse_bytes("18446744073709551615G").is_err());
        for bad in ["", "x", "12XB", "1", "99999999999999999999G", "18446744073709551615G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_fraction_is_from_0_to_1() {
        assert_eq!((parse_fraction("0"), parse_fraction("0.25"), parse_fraction("1")), (Ok(0.0), Ok(0.25), Ok(1.0)));
        for bad in ["", "-0.1", "1.1", "NaN", "10%"] {
            assert!(parse_fraction(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pause_is_none_or_up_to_a_second() {
        assert_eq!(parse_pause("0"), Ok(Duration::ZERO));
        assert_eq!(parse_pause("0ms"), Ok(Duration::ZERO));
        assert_eq!(parse_pause("5ms"), Ok(Duration::from_millis(5)));
        for bad in ["", "5", "2s", "-1ms", "0x", "ms"] {
            assert!(parse_pause(bad).is_err(), "{bad}");
        }
    }
}
