//! Golden scripts of the behaviour of a store, run on both implementations in lock-step: both give the same output.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;

use engine::store::memory::MemoryStore;
use engine::store::rocks::RocksStore;
use engine::store::{Cursor, Reader, Store};
use engine::{Cf, WriteBatch};
use goldenscript::{Argument, Command, Context};

use crate::common::{Crash, dump, family, open};

type Answer = Result<String, Box<dyn Error>>;

/// One store and the named snapshots of the script.
struct Side<S: Crash> {
    store: Option<S>,
    snapshots: BTreeMap<String, S::Snapshot>,
}

struct Pair {
    memory: Side<MemoryStore>,
    rocks: Side<RocksStore>,
}

impl goldenscript::Runner for Pair {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Answer {
        let memory = self.memory.run(command);
        let rocks = self.rocks.run(command);
        let text = |answer: &Answer| match answer {
            Ok(output) => output.clone(),
            Err(error) => format!("error: {error}"),
        };
        assert_eq!(text(&memory), text(&rocks), "memory (left) and RocksDB (right) differ on: {command}");
        memory
    }
}

impl<S: Crash> Side<S> {
    fn new(store: S) -> Side<S> {
        Side { store: Some(store), snapshots: BTreeMap::new() }
    }

    fn run(&mut self, command: &Command) -> Answer {
        let mut args = command.consume_args();
        let named = args.take_key("snapshot");
        match command.name.as_str() {
            "crash" => {
                self.snapshots.clear();
                self.store = self.store.take().map(Crash::crash);
                return Ok(String::new());
            }
            "drop" => {
                self.snapshots.remove(args.next_pos().ok_or("which snapshot?")?).ok_or("no such snapshot")?;
                return Ok(String::new());
            }
            _ => {}
        }
        let store = self.store.as_ref().ok_or("closed")?;
        let snapshot = match named {
            Some(name) => self.snapshots.get(name).ok_or("no such snapshot")?.clone(),
            None => store.snapshot(),
        };
        match command.name.as_str() {
            "write" => store.write(&batch(args)?)?,
            "flush" => store.flush()?,
            "snapshot" => {
                self.snapshots.insert(args.next_pos().ok_or("name it")?.to_owned(), snapshot);
            }
            "get" => {
                let (cf, key) = place(args.next_pos().ok_or("get what?")?)?;
                return Ok(shown(snapshot.get(cf, key.as_bytes())?));
            }
            "flushed" => {
                let (cf, key) = place(args.next_pos().ok_or("get what?")?)?;
                return Ok(shown(store.get_flushed(cf, key.as_bytes())?));
            }
            "dump" => return Ok(dump(&snapshot)),
            "cursor" => return steps(&snapshot, args),
            "replace" => replace(store, args)?,
            name => return Err(format!("unknown command {name}").into()),
        }
        Ok(String::new())
    }
}

/// `cursor CF/LOWER..UPPER STEP...` where a step is first, last, next, prev, seek=KEY or seek_for_prev=KEY.
fn steps(snapshot: &impl Reader, mut args: goldenscript::ArgumentConsumer<'_>) -> Answer {
    let (cf, range) = place(args.next_pos().ok_or("which range?")?)?;
    let (lower, upper) = range.split_once("..").ok_or("a range is written a..b")?;
    let mut cursor = snapshot.cursor(cf, lower.as_bytes(), upper.as_bytes())?;
    let mut output = String::new();
    for step in args {
        let valid = take_step(cursor.as_mut(), step)?;
        let stood_on = if valid {
            format!("{}={}", cursor.key().escape_ascii(), cursor.value().escape_ascii())
        } else {
            "none".to_owned()
        };
        writeln!(output, "{step} → {stood_on}")?;
    }
    Ok(output)
}

fn take_step(cursor: &mut dyn Cursor, step: &Argument) -> Result<bool, Box<dyn Error>> {
    Ok(match step {
        Argument::Positional(step) => match step.as_str() {
            "first" => cursor.seek_to_first()?,
            "last" => cursor.seek_to_last()?,
            "next" => cursor.next()?,
            "prev" => cursor.prev()?,
            step => return Err(format!("unknown step {step}").into()),
        },
        Argument::KeyValue(step, key) => match step.as_str() {
            "seek" => cursor.seek(key.as_bytes())?,
            "seek_for_prev" => cursor.seek_for_prev(key.as_bytes())?,
            step => return Err(format!("unknown step {step}").into()),
        },
        step => return Err(format!("unknown step {step}").into()),
    })
}

/// `replace START END CF/KEY=VALUE... [last=CF/KEY]` (the last batch puts "done"); a row may be `fail`.
fn replace<S: Store>(store: &S, mut args: goldenscript::ArgumentConsumer<'_>) -> Result<(), Box<dyn Error>> {
    let mut last = WriteBatch::new();
    if let Some(name) = args.take_key("last") {
        let (cf, key) = place(name)?;
        last.put(cf, key.as_bytes(), b"done");
    }
    let (Some(start), Some(end)) = (args.next_pos(), args.next_pos()) else { return Err("no range".into()) };
    let mut rows = Vec::new();
    for row in args {
        rows.push(match row {
            Argument::KeyValue(name, value) => {
                let (cf, key) = place(name)?;
                Ok((cf, key.into(), value.clone().into()))
            }
            _ => Err(engine::store::StoreError::Corrupt("row source failed".into())),
        });
    }
    store.replace_range(start.as_bytes(), end.as_bytes(), &mut rows.into_iter(), &last)?;
    Ok(())
}

/// A batch: `CF/KEY=VALUE` puts, `CF/KEY` deletes, `CF/START..END` deletes a range.
fn batch(args: goldenscript::ArgumentConsumer<'_>) -> Result<WriteBatch, Box<dyn Error>> {
    let mut batch = WriteBatch::new();
    for arg in args {
        match arg {
            Argument::KeyValue(name, value) => {
                let (cf, key) = place(name)?;
                batch.put(cf, key.as_bytes(), value.as_bytes());
            }
            Argument::Positional(name) => {
                let (cf, key) = place(name)?;
                match key.split_once("..") {
                    Some((start, end)) => batch.delete_range(cf, start.as_bytes(), end.as_bytes()),
                    None => batch.delete(cf, key.as_bytes()),
                }
            }
            arg => return Err(format!("unknown operation {arg}").into()),
        }
    }
    Ok(batch)
}

fn place(name: &str) -> Result<(Cf, &str), Box<dyn Error>> {
    let (cf, key) = name.split_once('/').ok_or("a place is written cf/key")?;
    Ok((family(cf).ok_or("no such column family")?, key))
}

fn shown(value: Option<Vec<u8>>) -> String {
    value.map_or("none".to_owned(), |value| value.escape_ascii().to_string())
}

fn run(script: &str) {
    let dir = tempfile::tempdir().unwrap();
    let rocks: PathBuf = dir.path().join("store");
    let mut pair = Pair { memory: Side::new(MemoryStore::new()), rocks: Side::new(open(&rocks)) };
    goldenscript::run(&mut pair, format!("tests/scripts/store/{script}")).unwrap();
}

#[test]
fn batches() {
    run("batches");
}

#[test]
fn cursors() {
    run("cursors");
}

#[test]
fn crashes() {
    run("crashes");
}

#[test]
fn replacements() {
    run("replacements");
}
