//! Runs, each in a process of its own: the parent starts this program again with the name of a cell, and the child
//! prints its figures as JSON.
//!
//! So engines share no allocator and no caches except the system's, and the counters of a process are those of the run.
//! A child exits without closing its log. If a child fails, the cell fails for that engine, and the other runs
//! continue.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Options;
use crate::engines::EngineKind;
use crate::limits;
use crate::measure::{Figures, drop_cache, sync_all};
use crate::report::{Runs, median};
use crate::workloads::{Cell, Context, cells};

/// The tasks of a child, as its parent names them.
const PREPARE: &str = "prepare";
const RUN: &str = "run";
const LIMITS: &str = "limits";

/// The child: runs the task of `--child` and prints the figures.
pub fn child(options: &Options, task: &str) {
    let dir = options.dir.clone().unwrap();
    let figures = match task.split_once(' ') {
        None if task == LIMITS => {
            let time = Duration::from_secs_f64(options.seconds() / 3.0);
            limits::measure(&dir, time, options.scale().of(5 << 30, 64 << 20).min(512 << 20))
        }
        Some((part, name)) => {
            let cell = cells(options.scale()).into_iter().find(|cell| cell.name == name).unwrap();
            let context = Context {
                engine: options.engines[0],
                dir,
                time: Duration::from_secs_f64(options.seconds()),
                prefill: !options.no_prefill,
            };
            match part {
                PREPARE => {
                    (cell.prepared.unwrap().write)(&context);
                    Figures::new()
                }
                RUN => (cell.run)(&context),
                _ => panic!("not a task: {task}"),
            }
        }
        None => panic!("not a task: {task}"),
    };
    println!("{}", serde_json::to_string(&figures).unwrap());
    // As if killed: no destructor runs.
    std::process::exit(0);
}

/// The parent.
pub struct Runner<'a> {
    options: &'a Options,
    /// The parent directory of all logs.
    root: PathBuf,
    /// The name of the data that is currently prepared.
    prepared: Option<String>,
    /// The number of failed children.
    pub failures: usize,
}

impl<'a> Runner<'a> {
    /// Runs in directories below `root`.
    pub fn new(options: &'a Options, root: &Path) -> Runner<'a> {
        Runner { options, root: root.to_owned(), prepared: None, failures: 0 }
    }

    /// The limits of the disk: medians over the rounds.
    pub fn limits(&mut self) -> Figures {
        let mut rounds: Vec<Figures> = Vec::new();
        for _ in 0..self.options.rounds() {
            let dir = self.fresh("limits");
            rounds.extend(self.start(LIMITS, EngineKind::Ours, &dir));
        }
        let Some(first) = rounds.first() else { return Figures::new() };
        let of = |at: usize| median(&rounds.iter().map(|round| round[at].1).collect::<Vec<_>>());
        first.iter().enumerate().map(|(at, (name, _))| (name.clone(), of(at))).collect()
    }

    /// All rounds of a cell, the engines in turn.
    pub fn cell(&mut self, cell: &Cell) -> Runs {
        let mut engines = self.options.engines.clone();
        self.prepare(cell, &mut engines);
        let mut runs = Runs::new();
        for round in 0..self.options.rounds() {
            for at in 0..engines.len() {
                // Every round starts with another engine.
                let engine = engines[(at + round) % engines.len()];
                let dir = match &cell.prepared {
                    Some(prepared) => self.root.join(format!("{}-{engine}", prepared.name)),
                    None => self.fresh(&engine.to_string()),
                };
                if cell.cold {
                    drop_cache(&dir);
                }
                if let Some(figures) = self.start(&format!("{RUN} {}", cell.name), engine, &dir) {
                    runs.entry(engine).or_default().push(figures);
                }
            }
        }
        runs
    }

    /// Writes the initial data of a cell, unless the previous cell has left it. An engine that fails is left out.
    fn prepare(&mut self, cell: &Cell, engines: &mut Vec<EngineKind>) {
        let name = cell.prepared.as_ref().map(|prepared| prepared.name.clone());
        if self.prepared == name {
            return;
        }
        std::fs::remove_dir_all(&self.root).unwrap();
        std::fs::create_dir_all(&self.root).unwrap();
        if let Some(name) = &name {
            engines.retain(|engine| {
                let dir = self.fresh(&format!("{name}-{engine}"));
                self.start(&format!("{PREPARE} {}", cell.name), *engine, &dir).is_some()
            });
        }
        self.prepared = name;
    }

    fn fresh(&self, name: &str) -> PathBuf {
        let dir = self.root.join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).unwrap();
        }
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Runs a child to completion.
    fn start(&mut self, task: &str, engine: EngineKind, dir: &Path) -> Option<Figures> {
        sync_all(dir);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--child", task, "--engines", &engine.to_string(), "--dir"]).arg(dir);
        command.args(["--seconds", &self.options.seconds().to_string()]);
        command.args(["--scale", &self.options.scale().0.to_string()]);
        command.args(self.options.no_prefill.then_some("--no-prefill"));
        let output = command.stderr(Stdio::inherit()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        match output.status.success() {
            true => Some(serde_json::from_str(text.lines().last().unwrap()).unwrap()),
            false => {
                self.failures += 1;
                eprintln!("FAILED {task} {engine}: {}", output.status);
                None
            }
        }
    }
}
