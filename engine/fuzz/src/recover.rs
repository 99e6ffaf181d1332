//! Opens a log whose files were damaged, in each recovery mode, and runs the tools over it.
//!
//! The first byte of an input names a sound log; the second what is done to it, and who looks at it then (each by itself, so that an
//! input takes little time); the rest says how it is damaged.
//!
//! - Damage that no checksum lets through: the log is refused with a typed error, or shows a state that it once had, and none from
//!   before the last commit that what is left of the files proves to be synced. What is salvaged, dumped or repaired was written.
//! - Damage, and then all checksums are made right again: whatever is in the files now, nothing panics.
//! - Files made of the input alone: the same.

use engine::disk::SimDisk;
use engine::log::{
    Budget, Durability, GroupId, LogEngine, LogError, LogOptions, RecoveryMode, RecoveryReport, Result, fuzzing,
};

use crate::bases::{Base, Files, bases, disk_with, files};
use crate::log_model::cases::append;
use crate::log_model::{Observed, batch_of, check_salvaged, observe, open};
use crate::mutate::{Input, mutate};
use crate::tools;

/// What is done to a log, by the second byte of an input.
pub const DAMAGED: u8 = 0;
pub const REPAIRED: u8 = 1;
pub const RAW: u8 = 2;
const DONE: u8 = 3;

/// Who looks at it then, by the same byte: opening, salvaging, the tools that look, repair.
pub const OPENED: u8 = 0;
pub const SALVAGED: u8 = 1;
pub const LOOKED_AT: u8 = 2;
pub const COPIED: u8 = 3;
const LOOKS: u8 = 4;

/// A group that no base has.
const NEW_GROUP: u64 = 77;

/// The second byte of an input.
pub fn plan(done: u8, look: u8) -> u8 {
    look * DONE + done
}

pub fn run(input: &[u8]) {
    let mut input = Input(input);
    let base = &bases()[usize::from(input.byte()) % bases().len()];
    let plan = input.byte();
    let look = plan / DONE % LOOKS;
    match plan % DONE {
        DAMAGED => {
            let mut files = base.files.clone();
            mutate(&mut files, &mut input, false);
            damaged(base, &files, look);
        }
        REPAIRED => {
            let mut files = base.files.clone();
            mutate(&mut files, &mut input, true);
            repair(&mut files);
            hostile(&files, &base.options, look);
        }
        _ => {
            let mut files = raw(&mut input);
            hostile(&files, &base.options, look);
            repair(&mut files);
            hostile(&files, &base.options, look);
        }
    }
}

/// Up to three files of the input's bytes.
fn raw(input: &mut Input<'_>) -> Files {
    let mut files = Files::new();
    for seq in 1..=3 {
        let len = input.number().min(input.0.len());
        let (content, rest) = input.0.split_at(len);
        files.insert(format!("{seq:016}.log"), content.to_vec());
        input.0 = rest;
        if rest.is_empty() {
            break;
        }
    }
    files
}

/// Makes the checksums of all files right, each file continuing the one before.
fn repair(files: &mut Files) {
    let logs = files.iter_mut().filter(|(name, _)| name.ends_with(".log"));
    logs.fold(None, |chain, (_, content)| fuzzing::repair(content, chain).or(chain));
}

/// The position up to which the newest file says that all is synced; 0 without a file, when a new log is begun.
fn proven(files: &Files) -> u64 {
    // Files are numbered from 1.
    let is_log = |name: &String| name.ends_with(".log") && *name != format!("{:016}.log", 0);
    let newest = files.iter().rfind(|(name, _)| is_log(name));
    newest.and_then(|(_, content)| fuzzing::proven(content)).unwrap_or(0)
}

/// Whether a refusal is for what is in the files.
pub fn is_typed(error: &LogError) -> bool {
    matches!(
        error,
        LogError::Corrupt { .. } | LogError::Missing { .. } | LogError::Misplaced { .. } | LogError::Version { .. }
    )
}

fn damaged(base: &Base, files: &Files, look: u8) {
    match look {
        OPENED => {
            let cut = truncated(base, files);
            strict(base, files, cut.as_ref());
        }
        SALVAGED => [false, true].into_iter().for_each(|keep_doubtful| salvaged(base, files, keep_doubtful)),
        LOOKED_AT => tools::look(base, files),
        _ => tools::copy(base, files),
    }
}

/// A torn tail is cut off, and the log goes on; anything else is refused. Returns what opening reported.
fn truncated(base: &Base, files: &Files) -> Option<RecoveryReport> {
    let disk = disk_with(files);
    let (engine, _writer, report) = match open(&disk, &base.options) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(is_typed(&error), "{error}");
            return None;
        }
    };
    match observe(&engine) {
        Ok(seen) => {
            let floor = proven(files);
            let positions = base.history.positions.iter().skip(1).chain([&u64::MAX]);
            let mut allowed = base.history.iter().zip(positions).filter(|(_, next)| **next > floor);
            assert!(allowed.any(|(state, _)| state.seen() == seen), "lost what is proven up to {floor}: {seen:?}");
            goes_on(&disk, &base.options, seen);
        }
        Err(error) => assert!(is_typed(&error), "{error}"),
    }
    Some(report)
}

/// The log takes a batch, and has it after a crash.
fn goes_on(disk: &SimDisk, options: &LogOptions, mut seen: Observed) {
    let text = "a log that was opened goes on";
    let reopened = open(disk, options).and_then(|(engine, mut writer, report)| {
        assert_eq!((report.truncated_bytes, observe(&engine)?), (0, seen.clone()), "opened again");
        let batch = batch_of(&[append(NEW_GROUP, 1, &[100])]);
        engine.submit_with(batch, Durability::Synced, Box::new(move |outcome| assert!(outcome.is_ok(), "{text}")))?;
        writer.turn();
        disk.crash(1);
        let (engine, ..) = open(disk, options)?;
        observe(&engine)
    });
    let mut now = reopened.unwrap_or_else(|error| panic!("{text}: {error}"));
    assert!(now.remove(&NEW_GROUP).is_some_and(|group| (group.first, group.last) == (1, 1)), "{text}");
    seen.remove(&NEW_GROUP);
    assert_eq!(now, seen, "{text}");
}

/// Nothing is cut off: a log that would be is refused, and its files stay as they are.
fn strict(base: &Base, files: &Files, cut: Option<&RecoveryReport>) {
    let disk = disk_with(files);
    match open(&disk, &LogOptions { recovery: RecoveryMode::Strict, ..base.options.clone() }) {
        Ok((.., report)) => assert_eq!(Some(&report), cut, "as it is opened otherwise"),
        Err(error) => {
            let torn = matches!(error, LogError::TornTail { .. });
            assert!(torn || is_typed(&error), "{error}");
            assert_eq!(torn, cut.is_some_and(|report| report.truncated_bytes > 0), "{error}");
            assert_eq!(self::files(&disk), *files, "refused, and changed");
        }
    }
}

/// Whatever is shown was written, and unless what is doubtful is asked for, is what a sound log would show. No file is touched.
fn salvaged(base: &Base, files: &Files, keep_doubtful: bool) {
    let options = LogOptions { recovery: RecoveryMode::Salvage, keep_doubtful, ..base.options.clone() };
    let disk = disk_with(files);
    match open(&disk, &options) {
        Ok((engine, mut writer, report)) => {
            assert!(was_written(base, &engine) || files.is_empty());
            if !keep_doubtful {
                let mut lies = Vec::new();
                for state in base.history.iter().rev() {
                    lies.extend(check_salvaged(&engine, &report, state).err());
                }
                // That of the newest state is the one to look at.
                let lie = lies.first().filter(|_| lies.len() == base.history.len());
                assert_eq!(lie, None, "{report:?}");
            }
            let refused = engine.write(batch_of(&[append(NEW_GROUP, 1, &[100])]), Durability::Synced);
            assert!(matches!(refused, Err(LogError::ReadOnly)), "{refused:?}");
            writer.finish();
        }
        Err(error) => assert!(is_typed(&error) || matches!(error, LogError::NoLog), "{error}"),
    }
    assert_eq!((self::files(&disk), disk.changes()), (files.clone(), 0), "salvaged, and changed");
}

/// Every entry and every key that can be read was written once, in its place.
pub fn was_written(base: &Base, engine: &LogEngine) -> bool {
    let entries = |group: GroupId| {
        let bounds = engine.bounds(group).into_iter().flat_map(|bounds| bounds.first..=bounds.last);
        bounds.filter_map(move |index| Some((index, engine.entry(group, index).ok()?)))
    };
    engine.groups().into_iter().all(|group| {
        entries(group).all(|(index, entry)| base.history.was_appended(group.0, index, entry.len(), &entry))
            && engine.scan(group).into_iter().flatten().all(|(key, value)| base.history.was_set(group.0, &key, &value))
    })
}

/// Nothing is known of the files: all of it may be refused, and nothing panics.
fn hostile(files: &Files, options: &LogOptions, look: u8) {
    let modes: &[RecoveryMode] = match look {
        OPENED => &[RecoveryMode::TruncateTail, RecoveryMode::Strict],
        SALVAGED => &[RecoveryMode::Salvage],
        LOOKED_AT => return tools::look_at_anything(files),
        _ => return tools::copy_anything(files, options),
    };
    for recovery in modes.iter().copied() {
        for deep in [false, true] {
            let disk = disk_with(files);
            let options = LogOptions { recovery, verify: deep, keep_doubtful: deep, ..options.clone() };
            used(&disk, &options, recovery).unwrap_or_else(|error| assert!(is_refusal(&error), "{error}"));
            assert!(recovery != RecoveryMode::Salvage || self::files(&disk) == *files, "salvaged, and changed");
        }
    }
}

fn is_refusal(error: &LogError) -> bool {
    is_typed(error) || matches!(error, LogError::TornTail { .. } | LogError::NoLog)
}

/// Opens a log, reads it and writes to it.
fn used(disk: &SimDisk, options: &LogOptions, recovery: RecoveryMode) -> Result<()> {
    let (engine, mut writer, _) = open(disk, options)?;
    if let Err(error) = observe(&engine) {
        let lost = recovery == RecoveryMode::Salvage && matches!(error, LogError::Lost { .. });
        assert!(lost || is_typed(&error), "{error}");
    }
    for round in 0..4 {
        let batch = batch_of(&[append(NEW_GROUP, round + 1, &[100])]);
        // The log may have its reasons to refuse, or be poisoned by what it finds; purge reads what nobody has read yet.
        let _ = engine.submit_with(batch, Durability::Synced, Box::new(drop));
        let _ = engine.purge(Budget::default());
        writer.turn();
    }
    Ok(())
}
