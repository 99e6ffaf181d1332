//! The command line: what can be typed, and its defaults.
//!
//! Parsing only; `main.rs` turns a [`Command`] into work and an exit code. A mistake in the flags is one line on stderr
//! ([`one_line`]) and exit code 2.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use engine::log::Compression;
use raftstore::transport::ClusterId;

use crate::config::{HostPort, Locality};

/// A distributed SQL database that speaks the PostgreSQL protocol.
#[derive(Debug, Parser)]
#[command(name = "cortado", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What every command has.
    #[command(flatten)]
    pub(crate) logs: LogArgs,
}

/// Flags about logs.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// How to print logs.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    /// Which logs to print, such as `info` or `info,raftstore=debug`; the environment variable RUST_LOG serves too.
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

/// Forms of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a cluster on this machine to try things out; Ctrl-C stops it
    Demo(DemoArgs),
    /// Start one node that is a whole cluster by itself
    StartSingleNode(SingleNodeArgs),
    /// Start a node of a cluster
    Start(StartArgs),
    /// Initialise a new cluster, once, through any of its started nodes
    Init(InitArgs),
    /// Show nodes, regions and leaders
    Status(StatusArgs),
    /// Look at the Raft log of a node that does not run, or repair it
    #[command(subcommand)]
    Log(LogCommand),
}

/// What to do with a Raft log.
#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Read and verify every byte; exit code 1 if anything is wrong
    Check(LogDirArgs),
    /// Show what it says, record by record
    Dump(DumpArgs),
    /// Count what it holds, by file and by group
    Stats(StatsArgs),
    /// Write what can be read of a damaged log to a new directory; exit code 1 if anything is lost
    Repair(RepairArgs),
}

/// Which log, and how to print.
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
    /// What every log command has.
    #[command(flatten)]
    pub(crate) log: LogDirArgs,
    /// Show only what concerns this Raft group
    #[arg(long, value_name = "ID")]
    pub(crate) group: Option<u64>,
    /// Show each entry too
    #[arg(long)]
    pub(crate) entries: bool,
    /// How many of an entry's first bytes to show
    #[arg(long, value_name = "BYTES", default_value_t = 16, requires = "entries")]
    pub(crate) prefix: usize,
}

/// Flags of `log stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// What every log command has.
    #[command(flatten)]
    pub(crate) log: LogDirArgs,
    /// Show so many groups, those that take most space first; 0 shows all. JSON has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
}

/// Flags of `log repair`.
#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// What every log command has.
    #[command(flatten)]
    pub(crate) log: LogDirArgs,
    /// Directory to write the new log to; created if missing, and must hold no log
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Also keep what a lost part of the log may have changed
    #[arg(long)]
    pub(crate) keep_doubtful: bool,
}

/// Flags of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How many nodes, 1 to 9
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=9))]
    pub(crate) nodes: u16,
    /// PostgreSQL port of the first node; the others take the following ones
    #[arg(long, default_value_t = 5433, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) pg_port: u16,
    /// Where to keep the data; without it a temporary directory that is removed at the end
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Flags shared by every command that starts a node.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Directory of this node's data; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Address for psql and drivers
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5433")]
    pub(crate) pg: SocketAddr,
    /// Address for Prometheus metrics (/metrics) and health (/healthz); none by default
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,
    /// Bytes of the block cache, such as 512MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = crate::config::parse_size)]
    pub(crate) cache: u64,
    /// Settings of the Raft log.
    #[command(flatten)]
    pub(crate) raft_log: RaftLogArgs,
    /// Allow addresses that other machines reach, although nothing is encrypted or authenticated
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Stop when standard input closes: for whoever starts nodes as child processes
    #[arg(long, hide = true)]
    pub(crate) until_stdin_closes: bool,
}

/// Flags about the Raft log. A log that is there may be opened with other settings than it was written with.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RaftLogArgs {
    /// Bytes at which a file of the Raft log is finished, 64KiB to 1GiB
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_file_size: u64,
    /// Bytes up to which the Raft log may grow before live data in it is moved to free files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_purge: u64,
    /// Bytes of the Raft log kept in memory, decompressed, for followers that read it; 0 keeps none
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_cache: u64,
    /// How the Raft log is compressed: none, lz4, zstd or zstd:LEVEL, 1 to 19
    #[arg(long, value_name = "CODEC", default_value = "lz4", value_parser = crate::config::parse_compression)]
    pub(crate) raft_log_compression: Compression,
    /// Synced writes to the Raft log end at multiples of this, a power of two from 8 to 64KiB; for a disk that may tear a sector, its sector size
    #[arg(long, value_name = "SIZE", default_value = "8", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_align: u64,
    /// Bytes of the Raft log that are read for damage each second, so that it is found while other nodes are whole; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = crate::config::parse_bytes)]
    pub(crate) raft_log_scrub: u64,
}

/// Flags of `start-single-node`.
#[derive(Debug, Args)]
pub(crate) struct SingleNodeArgs {
    /// What every node has.
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// Address for `cortado status`; by default 127.0.0.1:26257 or, if that is taken, any other port, which the log tells
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
}

/// Flags of `start`.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// What every node has.
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// Address for the other nodes
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// Address under which the other nodes reach this one, if it is not the one listened on
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) advertise: Option<HostPort>,
    /// Addresses of the first nodes of the cluster, this one included
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', required = true)]
    pub(crate) join: Vec<HostPort>,
    /// Where this node stands, from wide to narrow, such as region=eu,zone=a
    #[arg(long, value_name = "K=V,..", default_value = "")]
    pub(crate) locality: Locality,
    /// Refuse to start unless the cluster has this id
    #[arg(long, value_name = "ID")]
    pub(crate) cluster_id: Option<ClusterId>,
}

/// Flags of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Address (`--listen`) of one of the started nodes
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

/// What clap has to say about a mistake, on one line: its first paragraph and its tips, without the usage.
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

    fn refusal(args: &[&str]) -> String {
        one_line(&Cli::try_parse_from(std::iter::once("cortado").chain(args.iter().copied())).unwrap_err())
    }

    #[test]
    fn flags_hang_together() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn mistakes_are_one_line() {
        assert_eq!(
            refusal(&["start", "--pg", "127.0.0.1:1"]),
            "error: the following required arguments were not provided: --data <DIR> --listen <ADDR> --join <A,B,C>"
        );
        let said = refusal(&["status", "--hots", "127.0.0.1:1"]);
        assert!(said.starts_with("error: unexpected argument '--hots' found; tip: "), "{said}");
        let said = refusal(&["status", "--log-format", "xml"]);
        assert!(said.contains("'xml'") && said.contains("[possible values: text, json]"), "{said}");
        let said = refusal(&["log", "repair", "d"]);
        assert!(said.contains("--to <DIR>"), "{said}");
        let said = refusal(&["demo", "--nodes", "0\n\nx"]);
        assert!(!said.contains('\n'), "{said}");
    }

    /// What the flags say by default is what the log would have without them.
    #[test]
    fn the_log_has_its_defaults() {
        let config = crate::config::tests::raft_log();
        assert_eq!(format!("{:?}", config.options()), format!("{:?}", engine::log::LogOptions::default()));
    }

    #[test]
    fn settings_of_the_log_are_checked_where_they_are_typed() {
        let start = ["start-single-node", "--data", "d"];
        let said = refusal(&[&start[..], &["--raft-log-compression", "zstd:20"]].concat());
        assert!(said.contains("'zstd:20'") && said.contains("1 to 19"), "{said}");
        let said = refusal(&[&start[..], &["--raft-log-file-size", "12XB"]].concat());
        assert!(said.contains("--raft-log-file-size") && said.contains("unknown unit"), "{said}");
    }

    #[test]
    fn cluster_ids_are_checked_where_they_are_typed() {
        let start = ["start", "--data", "d", "--listen", "127.0.0.1:1", "--join", "127.0.0.1:1", "--cluster-id"];
        assert!(refusal(&[&start[..], &["beef"]].concat()).contains("\"beef\" is not a cluster id"));
    }
}
