//! Golden scripts: the effect of a few commands on the log, the disk and a reopened log, and the exact bytes of the
//! format.
//!
//! `UPDATE_GOLDENFILES=1 cargo test -p engine --test log script::` rewrites the output; review the diff.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use engine::disk::{Disk, Operation, SimDisk};
use engine::log::{Budget, Compression, Durability, GroupId, LogBatch, LogEngine, LogOptions, LogWriter};
use parking_lot::Mutex;

/// Commands of a script. A change is added to the current batch; `write` and `sync` submit it.
#[derive(goldenscript::Command)]
enum Command {
    /// append GROUP FIRST ENTRY...
    Append { group: u64, first: u64, entries: Vec<String> },
    /// same GROUP FIRST COUNT BYTES: entries of one letter, which compress well.
    Same { group: u64, first: u64, count: u64, bytes: usize },
    /// fill GROUP FIRST COUNT BYTES: entries that do not compress.
    Fill { group: u64, first: u64, count: u64, bytes: usize },
    /// put GROUP KEY VALUE
    Put { group: u64, key: String, value: String },
    /// delete GROUP KEY
    Delete { group: u64, key: String },
    /// compact GROUP FIRST_KEPT
    Compact { group: u64, first_kept: u64 },
    /// remove GROUP
    Remove { group: u64 },
    /// Ends the batch and submits it.
    Write,
    /// Ends the batch and submits it to be synced.
    Sync,
    /// Runs the writer; shows the outcome of each batch.
    Turn,
    /// Shows all groups, their entries and keys.
    Show,
    /// entry GROUP INDEX
    Entry { group: u64, index: u64 },
    /// entries GROUP FIRST END [max=BYTES]
    Entries {
        group: u64,
        first: u64,
        end: u64,
        #[arg(key)]
        max: Option<usize>,
    },
    /// Purges, and shows the bytes freed.
    Purge,
    /// settings [compression=off|lz4|zstd] [from=BYTES] [spares=COUNT]: take effect at the next open.
    Settings {
        #[arg(key)]
        compression: Option<String>,
        #[arg(key)]
        from: Option<usize>,
        #[arg(key)]
        spares: Option<usize>,
    },
    /// Shows the files and their lengths.
    Files,
    /// hex NAME FROM TO: the bytes of a file.
    Hex { name: String, from: usize, to: usize },
    /// group [max=BYTES]: the bytes of the last commit group of the newest file, without trailing zeros.
    Group {
        #[arg(key)]
        max: Option<usize>,
    },
    /// The process ends; opens the log again.
    Reopen,
    /// Power loss: the seed decides what unsynced data is kept.
    Crash { seed: u64 },
    /// A clean stop, then an open.
    Restart,
    /// fail OPERATION NTH: sync, write, rename, create, remove or sync_dir.
    Fail { operation: String, nth: u64 },
    /// The free space of the disk in bytes; unlimited without a number.
    Space { bytes: Option<u64> },
    /// lose NAME: removes a file durably.
    Lose { name: String },
    /// flip NAME OFFSET: flips a bit.
    Flip { name: String, offset: usize },
}

type Outcomes = Arc<Mutex<Vec<String>>>;

struct Script {
    disk: Arc<SimDisk>,
    log: Option<(LogEngine, LogWriter)>,
    batch: LogBatch,
    outcomes: Outcomes,
    options: LogOptions,
}

fn options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        align_bytes: 512,
        prefill_bytes: 0,
        block_bytes: 1 << 10,
        purge_threshold: 0,
        spare_files: 0,
        recovery_threads: 1,
        identity: Some(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100),
        ..LogOptions::default()
    }
}

impl Script {
    fn new() -> Script {
        let disk = SimDisk::new();
        let (engine, writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
        Script {
            disk,
            log: Some((engine, writer)),
            batch: LogBatch::new(),
            outcomes: Outcomes::default(),
            options: options(),
        }
    }

    fn engine(&self) -> Result<&LogEngine, Box<dyn Error>> {
        Ok(&self.log.as_ref().ok_or("the log is not open")?.0)
    }

    fn submit(&mut self, durability: Durability) -> Result<String, Box<dyn Error>> {
        let outcomes = self.outcomes.clone();
        let done = move |outcome: engine::log::Result<engine::log::Lsn>| {
            outcomes.lock().push(match outcome {
                Ok(lsn) => format!("ok at {}", lsn.0),
                Err(error) => format!("refused: {error}"),
            });
        };
        let batch = std::mem::take(&mut self.batch);
        self.engine()?.submit_with(batch, durability, Box::new(done))?;
        Ok(String::new())
    }

    fn open(&mut self) -> Result<String, Box<dyn Error>> {
        self.log = None;
        self.outcomes.lock().clear();
        let (engine, writer, report) = LogEngine::open_driven(self.disk.session(), self.options.clone())?;
        self.log = Some((engine, writer));
        let mut out = format!("{} files, {} groups, {} entries", report.files, report.groups, report.entries);
        if let Some((file, offset)) = report.truncated_at {
            write!(out, "; cut {} bytes off {file} at {offset}", report.truncated_bytes)?;
        }
        Ok(out + "\n")
    }

    fn show(&self) -> Result<String, Box<dyn Error>> {
        let engine = self.engine()?;
        let mut out = String::new();
        for id in engine.groups() {
            let bounds = engine.bounds(id).ok_or("group vanished")?;
            write!(out, "{}: {}..={}", id.0, bounds.first, bounds.last)?;
            let entries = engine.entries(id, bounds.first, bounds.last + 1, usize::MAX)?;
            for entry in entries.iter().take(8) {
                write!(out, " {}", shorten(entry))?;
            }
            if entries.len() > 8 {
                out.push_str(" ...");
            }
            for (key, value) in engine.scan(id)? {
                write!(out, " {}={}", shorten(&key), shorten(&value))?;
            }
            out.push('\n');
        }
        Ok(out)
    }

    fn change(&mut self, command: &Command) {
        match command {
            Command::Append { group, first, entries } => {
                let entries = entries.iter().map(|entry| Bytes::copy_from_slice(entry.as_bytes())).collect();
                self.batch.append(GroupId(*group), *first, entries);
            }
            Command::Same { group, first, count, bytes } => {
                let entries = (*first..first + count).map(|index| vec![b'a' + (index % 26) as u8; *bytes].into());
                self.batch.append(GroupId(*group), *first, entries.collect());
            }
            Command::Fill { group, first, count, bytes } => {
                let entries = (*first..first + count).map(|index| noise(*group, index, *bytes));
                self.batch.append(GroupId(*group), *first, entries.collect());
            }
            Command::Put { group, key, value } => self.batch.put(GroupId(*group), key.as_bytes(), value.as_bytes()),
            Command::Delete { group, key } => self.batch.delete(GroupId(*group), key.as_bytes()),
            Command::Compact { group, first_kept } => self.batch.compact(GroupId(*group), *first_kept),
            Command::Remove { group } => self.batch.remove(GroupId(*group)),
            _ => {}
        }
    }

    fn harm(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        match command {
            Command::Fail { operation, nth } => {
                let operation = match operation.as_str() {
                    "sync" => Operation::Sync,
                    "write" => Operation::Write,
                    "rename" => Operation::Rename,
                    "create" => Operation::Create,
                    "remove" => Operation::Remove,
                    "sync_dir" => Operation::SyncDir,
                    other => return Err(format!("no operation {other}").into()),
                };
                self.disk.fail_nth(operation, *nth, std::io::ErrorKind::Other);
            }
            Command::Space { bytes } => self.disk.set_capacity(bytes.map(|bytes| self.disk.used() + bytes)),
            Command::Lose { name } => self.disk.lose(name),
            Command::Flip { name, offset } => {
                let mut content = self.disk.content(name).ok_or("no such file")?;
                *content.get_mut(*offset).ok_or("past the end")? ^= 1;
                self.disk.set_content(name, content);
            }
            _ => {}
        }
        Ok(String::new())
    }

    fn set(
        &mut self,
        compression: Option<&str>,
        from: Option<usize>,
        spares: Option<usize>,
    ) -> Result<String, Box<dyn Error>> {
        let options = &mut self.options;
        options.compression = match compression {
            None => options.compression,
            Some("off") => Compression::Off,
            Some("lz4") => Compression::Lz4,
            Some("zstd") => Compression::Zstd(3),
            Some(other) => return Err(format!("no compression {other}").into()),
        };
        options.compress_from = from.unwrap_or(options.compress_from);
        options.spare_files = spares.unwrap_or(options.spare_files);
        Ok(String::new())
    }

    /// The last commit group of the newest file.
    fn group(&self, max: usize) -> Result<String, Box<dyn Error>> {
        let names = self.disk.list()?;
        let name = names.iter().rfind(|name| name.ends_with(".log")).ok_or("no file")?;
        let content = self.disk.content(name).ok_or("no such file")?;
        let from = content.chunks(8).rposition(|unit| unit.starts_with(b"CGRP")).ok_or("no commit group")? * 8;
        let end = content.iter().rposition(|byte| *byte != 0).ok_or("only zeros")? + 1;
        Ok(format!("{name}\n{}", self.hex(name, from, end.min(from.saturating_add(max)))?))
    }

    fn hex(&self, name: &str, from: usize, to: usize) -> Result<String, Box<dyn Error>> {
        let content = self.disk.content(name).ok_or("no such file")?;
        let to = to.min(content.len());
        let mut out = String::new();
        for at in (from..to).step_by(16) {
            let line = &content[at..to.min(at + 16)];
            let bytes: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let text: String =
                line.iter().map(|byte| if byte.is_ascii_graphic() { *byte as char } else { '.' }).collect();
            writeln!(out, "{at:06x}  {:<47}  {text}", bytes.join(" "))?;
        }
        Ok(out)
    }
}

/// A letter, then bytes that depend only on group and index.
fn noise(group: u64, index: u64, bytes: usize) -> Bytes {
    let mut state = group << 32 | index;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let letter = b'a' + (index % 26) as u8;
    std::iter::once(letter).chain(std::iter::repeat_with(&mut next)).take(bytes).collect()
}

fn shorten(bytes: &[u8]) -> String {
    match bytes {
        [first, rest @ ..] if rest.len() > 30 => format!("{}*{}", *first as char, bytes.len()),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

impl goldenscript::Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &goldenscript::Context) -> Result<String, Box<dyn Error>> {
        match command {
            Command::Write => self.submit(Durability::Buffered),
            Command::Sync => self.submit(Durability::Synced),
            Command::Turn => {
                let (_, writer) = self.log.as_mut().ok_or("the log is not open")?;
                writer.turn();
                Ok(std::mem::take(&mut *self.outcomes.lock()).into_iter().map(|outcome| outcome + "\n").collect())
            }
            Command::Show => self.show(),
            Command::Entry { group, index } => Ok(shorten(&self.engine()?.entry(GroupId(*group), *index)?) + "\n"),
            Command::Entries { group, first, end, max } => {
                let entries = self.engine()?.entries(GroupId(*group), *first, *end, max.unwrap_or(usize::MAX))?;
                Ok(entries.iter().map(|entry| shorten(entry)).collect::<Vec<_>>().join(" ") + "\n")
            }
            Command::Purge => Ok(format!("freed {}\n", self.engine()?.purge(Budget::default())?.freed)),
            Command::Files => {
                let names = self.disk.list()?;
                let lengths =
                    names.iter().map(|name| format!("{name} {}\n", self.disk.content(name).unwrap_or_default().len()));
                Ok(lengths.collect())
            }
            Command::Hex { name, from, to } => self.hex(name, *from, *to),
            Command::Settings { compression, from, spares } => self.set(compression.as_deref(), *from, *spares),
            Command::Group { max } => self.group(max.unwrap_or(usize::MAX)),
            Command::Reopen => self.open(),
            Command::Crash { seed } => {
                self.log = None;
                self.disk.crash(*seed);
                self.open()
            }
            Command::Restart => {
                let (_, writer) = self.log.as_mut().ok_or("the log is not open")?;
                writer.finish();
                self.open()
            }
            change => {
                self.change(change);
                self.harm(change)
            }
        }
    }
}

#[test]
fn scripts() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/log");
    let mut scripts: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        goldenscript::run(&mut Script::new(), &script).unwrap();
    }
}
