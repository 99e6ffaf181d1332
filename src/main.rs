//! The `cortado` program: flags, then work, then an exit code.
//!
//! Exit codes: 0 done, 1 refused, failed or found something wrong, 2 flags that make no sense. One line on stderr says why.

mod cli;
mod client;
mod config;
mod data_dir;
mod demo;
mod http;
mod log_tool;
mod logging;
mod node;
mod output;
mod plan;
mod signals;
mod status;

use std::error::Error;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::cli::{Cli, Command, NodeArgs, SingleNodeArgs, StartArgs};
use crate::config::{Locality, Membership, NodeConfig};
use crate::signals::Signals;

/// What still runs on other threads when a command is done gets this long.
const RUNTIME_STOP: Duration = Duration::from_secs(1);

/// Where a single node listens for `cortado status`, if the port is free.
const SINGLE_NODE_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 26257);
/// Exit code for flags that make no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("cortado: {}", one_line(&*error)));
            ExitCode::FAILURE
        }
    }
}

/// Help and version as they are, a mistake in one line.
fn explain(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // A reader that leaves early has seen enough.
        let _ = error.print();
    } else {
        complain(&cli::one_line(error));
    }
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// The last words on stderr; if nobody hears them, the exit code still tells.
fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// An error and its causes on one line; a cause that its error already tells is left out.
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
    // A thread that reads standard input never ends by itself.
    runtime.shutdown_timeout(RUNTIME_STOP);
    outcome
}

async fn dispatch(cli: Cli) -> Result<(), Box<dyn Error>> {
    match cli.command {
        Command::Demo(args) => demo::run(&args, &cli.logs).await?,
        Command::StartSingleNode(args) => serve(single_node(&args), &args.node).await?,
        Command::Start(args) => serve(node_of_many(&args), &args.node).await?,
        Command::Init(args) => {
            let (cluster, nodes) = client::init(&args.host).await?;
            output::line(format_args!("initialised cluster {cluster} of {nodes} node(s)"))?;
        }
        Command::Status(args) => output::line(status::run(&args.host, args.json).await?.trim_end())?,
        // Blocks, and nothing else is under way.
        Command::Log(command) => log_tool::run(&command)?,
    }
    Ok(())
}

async fn serve(config: NodeConfig, args: &NodeArgs) -> Result<(), Box<dyn Error>> {
    config.validate(args.insecure)?;
    let mut signals = Signals::catch()?;
    let until_stdin_closes = args.until_stdin_closes;
    let stop = async move {
        tokio::select! {
            () = signals.stop_requested() => {}
            () = signals::stdin_closed(), if until_stdin_closes => {}
        }
    };
    Ok(node::run(config, stop).await?)
}

fn single_node(args: &SingleNodeArgs) -> NodeConfig {
    let listen = args.listen.unwrap_or(SINGLE_NODE_LISTEN);
    NodeConfig {
        listen,
        // Nobody dials it but whoever asks for its status, so another port will do.
        or_any_port: args.listen.is_none(),
        advertise: listen.into(),
        ..base(&args.node, Membership::Alone, Locality::default())
    }
}

fn node_of_many(args: &StartArgs) -> NodeConfig {
    NodeConfig {
        listen: args.listen,
        advertise: args.advertise.clone().unwrap_or_else(|| args.listen.into()),
        cluster_id: args.cluster_id,
        ..base(&args.node, Membership::Join(args.join.clone()), args.locality.clone())
    }
}

/// What all nodes have in common; the caller fills in where it listens.
fn base(args: &NodeArgs, membership: Membership, locality: Locality) -> NodeConfig {
    NodeConfig {
        data: args.data.clone(),
        listen: args.pg,
        or_any_port: false,
        advertise: args.pg.into(),
        pg: args.pg,
        http: args.http,
        cache_bytes: args.cache,
        raft_log: args.raft_log.into(),
        membership,
        locality,
        cluster_id: None,
    }
}
