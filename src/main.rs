//! The `cortado` program: flags, then work, then an exit code.
//!
//! Exit codes: 0 done, 1 refused or failed (one line on stderr says why), 2 flags that make no sense (as clap prints them).

mod cli;
mod client;
mod config;
mod data_dir;
mod demo;
mod http;
mod logging;
mod node;
mod plan;
mod signals;
mod status;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::cli::{Cli, Command, NodeArgs, SingleNodeArgs, StartArgs};
use crate::config::{Locality, Membership, NodeConfig};

/// What still runs on other threads when a command is done gets this long.
const RUNTIME_STOP: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cortado: {}", one_line(&*error));
            ExitCode::FAILURE
        }
    }
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
    logging::start(cli.log_format, cli.log.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("cortado-net").build()?;
    let outcome = runtime.block_on(dispatch(cli.command));
    // A thread that reads standard input never ends by itself.
    runtime.shutdown_timeout(RUNTIME_STOP);
    outcome
}

async fn dispatch(command: Command) -> Result<(), Box<dyn Error>> {
    match command {
        Command::Demo(args) => demo::run(&args).await?,
        Command::StartSingleNode(args) => serve(single_node(&args), &args.node).await?,
        Command::Start(args) => serve(node_of_many(&args), &args.node).await?,
        Command::Init(args) => {
            let (cluster, nodes) = client::init(&args.host).await?;
            println!("initialised cluster {cluster} of {nodes} node(s)");
        }
        Command::Status(args) => println!("{}", status::run(&args.host, args.json).await?.trim_end()),
    }
    Ok(())
}

async fn serve(config: NodeConfig, args: &NodeArgs) -> Result<(), Box<dyn Error>> {
    config.validate(args.insecure)?;
    let until_stdin_closes = args.until_stdin_closes;
    let stop = async move {
        tokio::select! {
            () = signals::stop_requested() => {}
            () = signals::stdin_closed(), if until_stdin_closes => {}
        }
    };
    Ok(node::run(config, stop).await?)
}

fn single_node(args: &SingleNodeArgs) -> NodeConfig {
    NodeConfig {
        listen: args.listen,
        advertise: args.listen.into(),
        ..base(&args.node, Membership::Alone, Locality::default())
    }
}

fn node_of_many(args: &StartArgs) -> NodeConfig {
    NodeConfig {
        listen: args.listen,
        advertise: args.advertise.clone().unwrap_or_else(|| args.listen.into()),
        cluster_id: args.cluster_id.clone(),
        ..base(&args.node, Membership::Join(args.join.clone()), args.locality.clone())
    }
}

/// What all nodes have in common; the caller fills in where it listens.
fn base(args: &NodeArgs, membership: Membership, locality: Locality) -> NodeConfig {
    NodeConfig {
        data: args.data.clone(),
        listen: args.pg,
        advertise: args.pg.into(),
        pg: args.pg,
        http: args.http,
        cache_bytes: args.cache,
        membership,
        locality,
        cluster_id: None,
    }
}
