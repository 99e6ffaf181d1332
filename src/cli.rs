//! The command line: commands, flags and their defaults. Parsing only; `main.rs` runs the [`Command`].
//!
//! A parse error is one line on stderr ([`one_line`]) and exit code 2.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use engine::log::Compression;
use kv::Key;
use raftstore::transport::ClusterId;
use tso::Timestamp;

use crate::config::{Bandwidth, HostPort, Locality, RaftLogConfig, RoundTrip};

/// A distributed SQL database that speaks the PostgreSQL protocol.
#[derive(Debug, Parser)]
#[command(name = "cortado", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// The logging flags.
    #[command(flatten)]
    pub(crate) logs: LogArgs,
}

/// The logging flags, common to all commands.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Format of log lines
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Log filter, such as `info` or `info,raftstore=debug`; overrides the environment variable RUST_LOG
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

/// Formats of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a cluster on this machine to try things out; Ctrl-C stops it
    Demo(DemoArgs),
    /// Start a single-node cluster
    StartSingleNode(SingleNodeArgs),
    /// Start a node of a cluster
    Start(StartArgs),
    /// Initialise a new cluster once, through any of its started nodes
    Init(InitArgs),
    /// Show the nodes, regions and leaders of a cluster
    Status(StatusArgs),
    /// Show the row locks of the transactions of a cluster, and who waits for whom
    Locks(LocksArgs),
    /// Compare tables with their indexes
    #[command(subcommand)]
    Check(CheckCommand),
    /// Ask what became of a transaction
    #[command(subcommand)]
    Txn(TxnCommand),
    /// Inspect or repair the Raft log of a stopped node
    #[command(subcommand)]
    Log(LogCommand),
}

/// The comparisons.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Compare tables with their indexes, all at one snapshot, while clients go on. Fails if an index differs
    Table(CheckTableArgs),
}

/// Flags of `check table`.
#[derive(Debug, Args)]
pub(crate) struct CheckTableArgs {
    #[command(flatten)]
    pub(crate) status: StatusArgs,
    /// Database of the tables
    #[arg(long, value_name = "NAME", default_value = "postgres")]
    pub(crate) database: String,
    /// Tables as in SQL, such as orders or sales.orders; all of the database if there are none
    #[arg(value_name = "TABLE")]
    pub(crate) tables: Vec<String>,
}

/// The commands on transactions.
#[derive(Debug, Subcommand)]
pub(crate) enum TxnCommand {
    /// Show whether a transaction has committed. The error of an unknown outcome (08007) names what to ask for
    Status(TxnStatusArgs),
}

/// Flags of `txn status`.
#[derive(Debug, Args)]
pub(crate) struct TxnStatusArgs {
    /// Timestamp at which the transaction started, such as 1700000000000.7
    #[arg(value_name = "START_TS", value_parser = parse_start_ts)]
    pub(crate) start_ts: Timestamp,
    /// Primary key of the transaction, in hexadecimal digits
    #[arg(long, value_name = "KEY", value_parser = parse_primary)]
    pub(crate) primary: Key,
    /// Address (`--listen`) of any node
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:26257")]
    pub(crate) host: HostPort,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A timestamp at which a transaction can have started.
fn parse_start_ts(text: &str) -> Result<Timestamp, String> {
    match text.parse() {
        Ok(Timestamp::ZERO) => Err("no transaction starts at 0".to_owned()),
        Ok(start_ts) => Ok(start_ts),
        Err(error) => Err(error.to_string()),
    }
}

/// A key that a transaction can have written.
fn parse_primary(text: &str) -> Result<Key, String> {
    match Key::from_hex(text) {
        Ok(key) if key.as_bytes().is_empty() => Err("the key is empty".to_owned()),
        Ok(key) => Ok(key),
        Err(error) => Err(error.to_string()),
    }
}

/// The commands on a Raft log.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Verify every byte of the log; exits with 1 if it is damaged
    Check(LogDirArgs),
    /// Print the records of the log
    Dump(DumpArgs),
    /// Print statistics of the log by file and by Raft group
    Stats(StatsArgs),
    /// Write the readable part of a damaged log to a new directory; exits with 1 if anything is lost
    Repair(RepairArgs),
}

/// The flags of every log command.
#[derive(Debug, Args)]
pub(crate) struct LogDirArgs {
    /// Data directory of a node, or the log folder in it
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `log dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// The flags of every log command.
    #[command(flatten)]
    pub(crate) log: LogDirArgs,
    /// Print only records of this Raft group
    #[arg(long, value_name = "ID")]
    pub(crate) group: Option<u64>,
    /// Print the entries as well
    #[arg(long)]
    pub(crate) entries: bool,
    /// Number of leading bytes to print of each entry
    #[arg(long, value_name = "BYTES", default_value_t = 16, requires = "entries")]
    pub(crate) prefix: usize,
}

/// Flags of `log stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// The flags of every log command.
    #[command(flatten)]
    pub(crate) log: LogDirArgs,
    /// Number of groups to print, largest first; 0 prints all. JSON always contains all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
}

/// Flags of `log repair`.
#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// The flags of every log command.
    #[command(flatten)]
    pub(crate) log: LogDirArgs,
    /// Directory for the new log; created if missing, must be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Also keep entries and keys that a lost part of the log may have changed
    #[arg(long)]
    pub(crate) keep_doubtful: bool,
}

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Number of nodes, 1 to 9
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) nodes: u16,
    /// Names of 3 to 9 regions, with a node in each; the first one leads
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', conflicts_with = "nodes")]
    pub(crate) regions: Option<Vec<String>>,
    /// Round-trip time between the regions, 1ms to 300ms: one for all, or also of single pairs, such as 28ms,A-B=230ms
    #[arg(long, value_name = "TIME,..", value_delimiter = ',', requires = "regions")]
    pub(crate) rtt: Vec<RoundTrip>,
    /// Bandwidth from each region to each other one, 1Mbit to 100Gbit; by default unlimited
    #[arg(long, value_name = "BITS", requires = "rtt")]
    pub(crate) bandwidth: Option<Bandwidth>,
    /// PostgreSQL port of the first node; the other nodes use the following ports
    #[arg(long, default_value_t = 5433, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) pg_port: u16,
    /// Data directory; by default a temporary one that is removed at exit
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A further flag of every node, such as --node-flag=--cache=1GiB; for measurements
    #[arg(long, value_name = "FLAG", hide = true)]
    pub(crate) node_flag: Vec<String>,
}

/// Flags shared by every command that starts a node.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Data directory of the node; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Listen address for PostgreSQL clients
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5433")]
    pub(crate) pg: SocketAddr,
    /// Listen address for Prometheus metrics (/metrics) and health checks (/healthz); off by default
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,
    /// Size of the block cache, such as 512MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = crate::config::parse_size)]
    pub(crate) cache: u64,
    /// How long a request is retried while the replicas of its rows cannot be reached; then its statement fails
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = crate::config::parse_time)]
    pub(crate) retry_for: Duration,
    /// How often the leader of a table that other nodes read tells them how far they may read; 0 tells only who asks
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = crate::config::parse_pause)]
    pub(crate) push_interval: Duration,
    /// Fraction of the reads at replicas, from 0 to 1, that are read again on the leader and compared; a difference is
    /// a defect, which is logged and counted
    #[arg(long, value_name = "FRACTION", default_value = "0", value_parser = crate::config::parse_fraction)]
    pub(crate) shadow_reads: f64,
    /// The most advisory locks that the sessions of the node hold; a session may have a tenth of it
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u32).range(10..))]
    pub(crate) max_advisory_locks: u32,
    /// The most that one transaction may write, 1MiB to 4GiB; its node keeps that in memory until it commits
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = crate::config::parse_transaction_size)]
    pub(crate) max_transaction_size: u64,
    /// The flags of the Raft log.
    #[command(flatten)]
    pub(crate) raft_log: RaftLogArgs,
    /// Allow listen addresses beyond loopback, although nothing is encrypted or authenticated
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Stop when standard input is closed; for a parent process
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

/// The flags of the Raft log. An existing log may be opened with other settings than it was written with.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RaftLogArgs {
    /// Size at which a Raft log file is sealed, 64KiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_file_size: u64,
    /// Size above which the Raft log rewrites live data to free whole files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_purge: u64,
    /// Size of the cache of decompressed Raft log blocks, for followers that catch up; 0 disables it
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_cache: u64,
    /// Compression of the Raft log: none, lz4, zstd or zstd:LEVEL, with level 1 to 19
    #[arg(long, value_name = "CODEC", default_value = "lz4", value_parser = crate::config::parse_compression)]
    pub(crate) raft_log_compression: Compression,
    /// Alignment of synced Raft log writes, a power of two from 8 to 64KiB; the sector size for a disk that may tear
    /// sectors
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_align: u64,
    /// Bytes of the Raft log to scrub for damage per second, so that it is found while other replicas are intact; 0
    /// disables scrubbing
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_scrub: u64,
}

impl RaftLogArgs {
    /// The settings that the flags give.
    pub(crate) fn config(self) -> RaftLogConfig {
        RaftLogConfig {
            file_bytes: self.raft_log_file_size,
            purge_bytes: self.raft_log_purge,
            cache_bytes: self.raft_log_cache,
            compression: self.raft_log_compression,
            align_bytes: self.raft_log_align,
            scrub_bytes: self.raft_log_scrub,
        }
    }
}

/// Flags of `start-single-node`.
#[derive(Debug, Args)]
pub(crate) struct SingleNodeArgs {
    /// The flags of every node.
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// Listen address for `cortado status`; by default 127.0.0.1:26257 or, if that is in use, any free port, which is
    /// logged
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
}

/// Flags of `start`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The flags of every node.
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// Listen address for other nodes
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// Address at which other nodes reach this one; by default the listen address
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<HostPort>,
    /// Local address of the connections to other nodes; by default the system chooses
    #[arg(long, value_name = "IP")]
    pub(crate) connect_from: Option<IpAddr>,
    /// Addresses of the initial nodes of the cluster, this node included
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', required = true)]
    pub(crate) join: Vec<HostPort>,
    /// Location of the node as key=value tiers from wide to narrow, such as region=eu,zone=a
    #[arg(long, value_name = "K=V,..", default_value = "")]
    pub(crate) locality: Locality,
    /// Refuse to start unless the cluster has this id
    #[arg(long, value_name = "ID")]
    pub(crate) cluster_id: Option<ClusterId>,
}

/// Flags of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Address (`--listen`) of any started node
    #[arg(long, value_name = "ADDR")]
    pub(crate) host: HostPort,
}

/// Flags of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Address (`--listen`) of any node
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:26257")]
    pub(crate) host: HostPort,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags of `locks`.
#[derive(Debug, Args)]
pub(crate) struct LocksArgs {
    #[command(flatten)]
    pub(crate) status: StatusArgs,
    /// List at most so many locks and waits, first those of rows that somebody waits for
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
}

/// Renders a clap error on one line: its first paragraph and its tips, without the usage.
pub(crate) fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let first = paragraphs.next().unwrap_or_default();
    let tips = paragraphs.filter(|paragraph| paragraph.trim_start().starts_with("tip:"));
    let in_a_row = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    std::iter::once(first).chain(tips).map(in_a_row).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_error(args: &[&str]) -> String {
        one_line(&Cli::try_parse_from(std::iter::once("cortado").chain(args.iter().copied())).unwrap_err())
    }

    #[test]
    fn flags_are_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn parse_errors_are_one_line() {
        assert_eq!(
            parse_error(&["start", "--pg", "127.0.0.1:1"]),
            "error: the following required arguments were not provided: --data <DIR> --listen <ADDR> --join <A,B,C>"
        );
        let said = parse_error(&["status", "--hots", "127.0.0.1:1"]);
        assert!(said.starts_with("error: unexpected argument '--hots' found; tip: "), "{said}");
        let said = parse_error(&["status", "--log-format", "xml"]);
        assert!(said.contains("'xml'") && said.contains("[possible values: text, json]"), "{said}");
        let said = parse_error(&["log", "repair", "d"]);
        assert!(said.contains("--to <DIR>"), "{said}");
        let said = parse_error(&["demo", "--nodes", "0\n\nx"]);
        assert!(!said.contains('\n'), "{said}");
    }

    /// The flags' defaults are the engine's defaults, and those of the tests' configuration.
    #[test]
    fn raft_log_flags_have_the_engines_defaults() {
        let cli = Cli::try_parse_from(["cortado", "start-single-node", "--data", "d"]).unwrap();
        let Command::StartSingleNode(args) = cli.command else { panic!("another command") };
        assert_eq!(args.node.retry_for, kv::client::ClientConfig::default().deadline);
        assert_eq!(args.node.push_interval, kv::grants::GrantsConfig::default().push_interval);
        let config = args.node.raft_log.config();
        assert_eq!(format!("{:?}", config.options()), format!("{:?}", engine::log::LogOptions::default()));
        assert_eq!(format!("{config:?}"), format!("{:?}", crate::config::tests::raft_log()));
    }

    #[test]
    fn raft_log_flags_are_validated_at_parse_time() {
        let start = ["start-single-node", "--data", "d"];
        let said = parse_error(&[&start[..], &["--raft-log-compression", "zstd:20"]].concat());
        assert!(said.contains("'zstd:20'") && said.contains("1 to 19"), "{said}");
        let said = parse_error(&[&start[..], &["--raft-log-file-size", "12XB"]].concat());
        assert!(said.contains("--raft-log-file-size") && said.contains("unknown unit"), "{said}");
    }

    #[test]
    fn transactions_are_named_by_timestamp_and_key() {
        let parse = |args: [&str; 3]| Cli::try_parse_from(["cortado", "txn", "status"].into_iter().chain(args));
        let Command::Txn(TxnCommand::Status(args)) = parse(["17.4", "--primary", "7400ff"]).unwrap().command else {
            panic!("another command")
        };
        assert_eq!((args.start_ts, args.primary.as_bytes()), (Timestamp::new(17, 4), &b"t\x00\xff"[..]));
        let refused = [
            (["17", "--primary", "74"], "START_TS"),
            (["17.4", "--primary", "7"], "hexadecimal"),
            (["17.4", "--primary", "xy"], "hexadecimal"),
            (["0.0", "--primary", "74"], "no transaction starts at 0"),
            (["17.4", "--primary", ""], "--primary"),
        ];
        for (bad, why) in refused {
            let said = one_line(&parse(bad).unwrap_err());
            assert!(said.starts_with("error: ") && said.contains(why) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn cluster_ids_are_validated_at_parse_time() {
        let start = ["start", "--data", "d", "--listen", "127.0.0.1:1", "--join", "127.0.0.1:1", "--cluster-id"];
        assert!(parse_error(&[&start[..], &["beef"]].concat()).contains("\"beef\" is not a cluster id"));
    }
}
