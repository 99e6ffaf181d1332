//! `cortado demo`: a cluster on this machine, to try things out, with a node in each of several regions if they are
//! named.
//!
//! Each node is a child process, so that the user can kill it. A node stops when its standard input is closed, so no
//! node outlives the demo, however the demo ends. A temporary directory is removed only after a clean end of all nodes:
//! a running node still uses its files, and after a failure the logs are needed.
//!
//! # Layers
//!
//! 1. `distance`: the proxies between the nodes
//! 2. `regions`: the flags about regions
//! 3. `error`: the errors of the demo
//! 4. `nodes`: the processes of the nodes
//! 5. `text`: what is printed once they serve

mod distance;
mod error;
mod nodes;
mod regions;
mod text;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prometheus::Registry;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use self::distance::Distance;
use self::error::{DemoError, io_error};
use self::nodes::{Layout, NodeProcess};
use self::regions::Regions;
use crate::cli::{DemoArgs, LogArgs};
use crate::console::{StopSignals, show_line};
use crate::http::{self, Health};

/// Runs the demo until Ctrl-C or SIGTERM.
pub(crate) async fn run(args: &DemoArgs, logs: &LogArgs) -> Result<(), DemoError> {
    let regions = Regions::from_args(args)?;
    let mut signals = StopSignals::install().map_err(io_error("signals"))?;
    let layout = Layout::new(args, regions)?;
    layout.check_ports()?;
    let dir = DemoDir::open(args.data.as_deref())?;
    show_line(format_args!("Starting {} node(s) in {} ...", layout.nodes(), dir.path.display()));
    let mut nodes = Vec::new();
    let stop_http = CancellationToken::new();
    let outcome = match start_distance(&layout, &stop_http).await {
        Ok(distance) => {
            let outcome = run_until_stopped((&layout, logs), &dir, distance.as_ref(), &mut nodes, &mut signals).await;
            show_line("\nStopping ...");
            // Before the proxies: a node that stops hands its leaderships over.
            let all_ended = nodes::stop(nodes).await;
            drop(distance);
            outcome.map(|()| all_ended)
        }
        Err(error) => Err(error),
    };
    stop_http.cancel();
    dir.close(matches!(outcome, Ok(true)));
    outcome.map(|_| ())
}

/// Starts the proxies, if there is a distance between the regions, and the page with their counters.
async fn start_distance(layout: &Arc<Layout>, stop: &CancellationToken) -> Result<Option<Distance>, DemoError> {
    let Some((plan, metrics)) = layout.distance().zip(layout.metrics()) else { return Ok(None) };
    let registry = Registry::new();
    let what = "the distance between the regions";
    let (plan, sockets, counters) = (plan.clone(), layout.clone(), registry.clone());
    // Blocks while it measures.
    let start = move || {
        let bind = |(advertised, listen)| TcpListener::bind(advertised).map(|listener| (listener, listen));
        Distance::start(&plan, sockets.addresses().map(bind).collect::<Result<_, _>>()?, &counters)
    };
    let started = tokio::task::spawn_blocking(start).await.map_err(std::io::Error::other).flatten();
    let listener = tokio::net::TcpListener::bind(metrics).await.map_err(io_error(metrics))?;
    let health = Health::starting();
    health.serving();
    tokio::spawn(http::serve(listener, registry, health, stop.clone()));
    started.map(Some).map_err(io_error(what))
}

/// Starts the nodes and runs until a stop signal or a failure.
async fn run_until_stopped(
    (layout, logs): (&Layout, &LogArgs),
    dir: &DemoDir,
    distance: Option<&Distance>,
    nodes: &mut Vec<NodeProcess>,
    signals: &mut StopSignals,
) -> Result<(), DemoError> {
    for number in 1..=layout.nodes() {
        nodes.push(nodes::spawn(layout, logs, number, &dir.path).map_err(io_error("cannot start a node"))?);
    }
    let start = async {
        nodes::start_cluster(nodes, &dir.path).await?;
        if layout.regions().is_some() {
            nodes::lead_from_first(nodes, &dir.path).await?;
        }
        Ok::<(), DemoError>(())
    };
    // `biased`: Ctrl-C also reaches the nodes, so they end at the same time. That is a stop, not a failure.
    tokio::select! {
        biased;
        () = signals.recv() => return Ok(()),
        started = start => started?,
    }
    text::print_instructions(layout, nodes, distance.map(Distance::measured), dir.temporary.is_some());
    tokio::select! {
        biased;
        () = signals.recv() => Ok(()),
        () = nodes::watch_until_all_ended(nodes) => Err(DemoError::AllEnded { dir: dir.path.display().to_string() }),
    }
}

/// The directory for the data and logs of all nodes.
struct DemoDir {
    path: PathBuf,
    /// Removes the directory; `None` for a directory given with `--data`.
    temporary: Option<TempDir>,
}

impl DemoDir {
    fn open(dir: Option<&Path>) -> Result<DemoDir, DemoError> {
        let Some(dir) = dir else {
            let temporary = tempfile::Builder::new().prefix("cortado-demo-").tempdir();
            let temporary = temporary.map_err(io_error("temporary directory"))?;
            return Ok(DemoDir { path: temporary.path().to_path_buf(), temporary: Some(temporary) });
        };
        fs::create_dir_all(dir).map_err(io_error(dir.display()))?;
        Ok(DemoDir { path: dir.to_path_buf(), temporary: None })
    }

    /// Removes a temporary directory if it is `removable`, else keeps it and says where it is.
    fn close(self, removable: bool) {
        let Some(temporary) = self.temporary else {
            return;
        };
        if !removable {
            let kept = temporary.keep();
            show_line(format_args!("Data and logs are kept in {}.", kept.display()));
        } else if let Err(error) = temporary.close() {
            show_line(format_args!("{} cannot be removed: {error}", self.path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_kept_unless_removable() {
        let dir = DemoDir::open(None).unwrap();
        let path = dir.path.clone();
        dir.close(true);
        assert!(!path.exists());
        let dir = DemoDir::open(None).unwrap();
        let path = dir.path.clone();
        dir.close(false);
        assert!(path.is_dir());
        fs::remove_dir(path).unwrap();
    }
}
