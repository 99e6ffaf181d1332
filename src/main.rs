//! The `cortado` program: parses the flags, runs the command, maps its result to an exit code.
//!
//! Exit codes: 0 for success, 1 if the command failed or found damage, 2 for flags that cannot be parsed. An error is
//! one line on stderr.
//!
//! # Layers
//!
//! 1. `config`, `console`, `http`, `plan`: configuration, the terminal, the HTTP endpoints, the plan of a new cluster
//! 2. `cli`, `data_dir`, `proto`: the command line, the data directory, the messages of the node service
//! 3. `client`, `log_tool`, `logging`: the client of the node service, the log commands, log output
//! 4. `check`, `demo`, `locks`, `node`, `status`, `txn_status`: the other commands

mod check;
mod cli;
mod client;
mod config;
mod console;
mod data_dir;
mod demo;
mod http;
mod locks;
mod log_tool;
mod logging;
mod node;
mod plan;
mod proto;
mod status;
mod txn_status;

use std::error::Error;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::cli::{CheckCommand, Cli, Command, NodeArgs, SingleNodeArgs, StartArgs, TxnCommand};
use crate::config::{Locality, Membership, NodeConfig};
use crate::console::StopSignals;

/// How long the runtime's threads may outlive the command.
const RUNTIME_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The default listen address of a single node, for `cortado status`. Another port serves if it is taken.
const SINGLE_NODE_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 26257);
/// The exit code for invalid flags.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit_unparsed(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("cortado: {}", one_line(&*error)));
            ExitCode::FAILURE
        }
    }
}

/// Prints help and version as they are, an error as one line. Returns the exit code.
fn exit_unparsed(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // Fails only if the reader has closed the pipe.
        let _ = error.print();
    } else {
        print_error(&cli::one_line(error));
    }
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Writes a line to stderr. If that fails, the exit code still reports the error.
fn print_error(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Renders an error and its causes on one line, without causes that the error's own text already contains.
fn one_line(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line.replace('\n', " ")
}

fn run(cli: Cli) -> Result<(), Box<dyn Error>> {
    logging::start(&cli.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("cortado-net").build()?;
    let outcome = runtime.block_on(dispatch(cli));
    // The thread that reads standard input never ends by itself.
    runtime.shutdown_timeout(RUNTIME_STOP_TIMEOUT);
    outcome
}

async fn dispatch(cli: Cli) -> Result<(), Box<dyn Error>> {
    match cli.command {
        Command::Demo(args) => demo::run(&args, &cli.logs).await?,
        Command::StartSingleNode(args) => serve(single_node(&args), &args.node).await?,
        Command::Start(args) => serve(cluster_node(&args), &args.node).await?,
        Command::Init(args) => {
            let (cluster, nodes) = client::init(&args.host).await?;
            console::print_line(format_args!("initialised cluster {cluster} of {nodes} node(s)"))?;
        }
        Command::Status(args) => console::print_line(status::run(&args.host, args.json).await?.trim_end())?,
        Command::Locks(args) => {
            console::print_line(locks::run(&args.status.host, args.limit, args.status.json).await?.trim_end())?
        }
        Command::Check(CheckCommand::Table(args)) => {
            check::run(&args.status.host, args.database, args.tables, args.status.json).await?;
        }
        Command::Txn(TxnCommand::Status(args)) => {
            console::print_line(txn_status::run(&args.host, args.start_ts, &args.primary, args.json).await?)?;
        }
        // Blocks the runtime's thread, on which no other task runs.
        Command::Log(command) => log_tool::run(&command)?,
    }
    Ok(())
}

async fn serve(config: NodeConfig, args: &NodeArgs) -> Result<(), Box<dyn Error>> {
    config.validate(args.insecure)?;
    let mut signals = StopSignals::install()?;
    let until_stdin_closes = args.until_stdin_closes;
    let stop = async move {
        tokio::select! {
            () = signals.recv() => {}
            () = console::stdin_closed(), if until_stdin_closes => {}
        }
    };
    Ok(node::run(config, stop).await?)
}

fn single_node(args: &SingleNodeArgs) -> NodeConfig {
    let listen = args.listen.unwrap_or(SINGLE_NODE_LISTEN);
    NodeConfig {
        listen,
        // Only `cortado status` dials it, so any port works.
        fall_back_to_any_port: args.listen.is_none(),
        advertise: listen.into(),
        ..common_config(&args.node, Membership::SingleNode, Locality::default())
    }
}

fn cluster_node(args: &StartArgs) -> NodeConfig {
    NodeConfig {
        listen: args.listen,
        advertise: args.advertise.clone().unwrap_or_else(|| args.listen.into()),
        connect_from: args.connect_from,
        cluster_id: args.cluster_id,
        ..common_config(&args.node, Membership::Join(args.join.clone()), args.locality.clone())
    }
}

/// The settings that both start commands share. The caller overrides the listen addresses.
fn common_config(args: &NodeArgs, membership: Membership, locality: Locality) -> NodeConfig {
    NodeConfig {
        data: args.data.clone(),
        listen: args.pg,
        fall_back_to_any_port: false,
        advertise: args.pg.into(),
        connect_from: None,
        pg: args.pg,
        http: args.http,
        cache_bytes: args.cache,
        retry_for: args.retry_for,
        push_interval: args.push_interval,
        shadow_reads: args.shadow_reads,
        max_advisory_locks: args.max_advisory_locks,
        max_transaction_size: args.max_transaction_size,
        raft_log: args.raft_log.config(),
        membership,
        locality,
        cluster_id: None,
    }
}
