//! Opens a log whose files were damaged, in each recovery mode, and runs the tools over it.
//!
//! The first byte of an input selects a sound log. The second selects the kind of damage, and the operation to run on
//! the result (one for each input, so that an input takes little time). The rest describes the damage.
//!
//! - `DAMAGE`: checksums detect all of it. The log is refused with a typed error, or shows a state that it once had,
//!   and none from before the last commit that the files still prove to be synced. Salvage, dump and repair show only
//!   data that was written.
//! - `FORGE`: damage, then all checksums are fixed. Whatever is in the files now, nothing panics.
//! - `RAW`: files made of the input alone. Nothing panics.
//!
//! `recover` uses `tools`; both use `bases`.

use engine::disk::SimDisk;
use engine::log::{Budget, Durability, LogError, LogOptions, RecoveryMode, RecoveryReport, Result, fuzzing};

use crate::bases::{Base, Files, bases, disk_with, files, is_damage_error, was_written};
use crate::log_model::cases::append;
use crate::log_model::{Observed, batch_of, check_salvaged, observe, open};
use crate::mutate::{Input, mutate};
use crate::tools;

/// The kinds of damage, in the second byte of an input.
pub const DAMAGE: u8 = 0;
pub const FORGE: u8 = 1;
pub const RAW: u8 = 2;
const DAMAGE_KINDS: u8 = 3;

/// The operations, in the same byte: open, salvage, the read-only tools, repair.
pub const OPEN: u8 = 0;
pub const SALVAGE: u8 = 1;
pub const INSPECT: u8 = 2;
pub const REPAIR: u8 = 3;
const OPERATIONS: u8 = 4;

/// A group that no base log has.
const NEW_GROUP: u64 = 77;

/// The second byte of an input, from the kind of damage and the operation.
pub fn plan(damage: u8, operation: u8) -> u8 {
    operation * DAMAGE_KINDS + damage
}

pub fn run(input: &[u8]) {
    let mut input = Input(input);
    let base = &bases()[usize::from(input.byte()) % bases().len()];
    let plan = input.byte();
    let operation = plan / DAMAGE_KINDS % OPERATIONS;
    match plan % DAMAGE_KINDS {
        DAMAGE => {
            let mut files = base.files.clone();
            mutate(&mut files, &mut input, false);
            damaged(base, &files, operation);
        }
        FORGE => {
            let mut files = base.files.clone();
            mutate(&mut files, &mut input, true);
            fix_checksums(&mut files);
            hostile(&files, &base.options, operation);
        }
        _ => {
            let mut files = raw(&mut input);
            hostile(&files, &base.options, operation);
            fix_checksums(&mut files);
            hostile(&files, &base.options, operation);
        }
    }
}

/// Up to three files made of the bytes of the input.
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

/// Fixes the checksums of all files; each file continues the previous one.
fn fix_checksums(files: &mut Files) {
    let logs = files.iter_mut().filter(|(name, _)| name.ends_with(".log"));
    logs.fold(None, |chain, (_, content)| fuzzing::repair(content, chain).or(chain));
}

/// The position up to which the newest file records that all is synced; 0 without a file, because a new log is created.
fn proven(files: &Files) -> u64 {
    // Files are numbered from 1.
    let is_log = |name: &String| name.ends_with(".log") && *name != format!("{:016}.log", 0);
    let newest = files.iter().rfind(|(name, _)| is_log(name));
    newest.and_then(|(_, content)| fuzzing::proven(content)).unwrap_or(0)
}

fn damaged(base: &Base, files: &Files, operation: u8) {
    match operation {
        OPEN => {
            let cut = truncated(base, files);
            strict(base, files, cut.as_ref());
        }
        SALVAGE => [false, true].into_iter().for_each(|keep_doubtful| salvaged(base, files, keep_doubtful)),
        INSPECT => tools::inspect(base, files),
        _ => tools::repair_damaged(base, files),
    }
}

/// A torn tail is cut, and the log continues; other damage is refused. Returns the report of opening.
fn truncated(base: &Base, files: &Files) -> Option<RecoveryReport> {
    let disk = disk_with(files);
    let (engine, _writer, report) = match open(&disk, &base.options) {
        Ok(opened) => opened,
        Err(error) => {
            assert!(is_damage_error(&error), "{error}");
            return None;
        }
    };
    match observe(&engine) {
        Ok(seen) => {
            let floor = proven(files);
            let positions = base.history.positions.iter().skip(1).chain([&u64::MAX]);
            let mut allowed = base.history.iter().zip(positions).filter(|(_, next)| **next > floor);
            assert!(allowed.any(|(state, _)| state.seen() == seen), "lost what is proven up to {floor}: {seen:?}");
            continues(&disk, &base.options, seen);
        }
        Err(error) => assert!(is_damage_error(&error), "{error}"),
    }
    Some(report)
}

/// The log accepts a batch, and shows it after a crash.
fn continues(disk: &SimDisk, options: &LogOptions, mut seen: Observed) {
    let text = "an opened log continues";
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

/// `Strict` refuses a log that needs a cut, and does not change its files.
fn strict(base: &Base, files: &Files, cut: Option<&RecoveryReport>) {
    let disk = disk_with(files);
    match open(&disk, &LogOptions { recovery: RecoveryMode::Strict, ..base.options.clone() }) {
        Ok((.., report)) => assert_eq!(Some(&report), cut, "as it is opened otherwise"),
        Err(error) => {
            let torn = matches!(error, LogError::TornTail { .. });
            assert!(torn || is_damage_error(&error), "{error}");
            assert_eq!(torn, cut.is_some_and(|report| report.truncated_bytes > 0), "{error}");
            assert_eq!(self::files(&disk), *files, "refused, but changed");
        }
    }
}

/// Salvage shows only written data, and without `keep_doubtful` only what a sound log shows. It changes no file.
fn salvaged(base: &Base, files: &Files, keep_doubtful: bool) {
    let options = LogOptions { recovery: RecoveryMode::Salvage, keep_doubtful, ..base.options.clone() };
    let disk = disk_with(files);
    match open(&disk, &options) {
        Ok((engine, mut writer, report)) => {
            assert!(was_written(base, &engine) || files.is_empty());
            if !keep_doubtful {
                let mut violations = Vec::new();
                for state in base.history.iter().rev() {
                    violations.extend(check_salvaged(&engine, &report, state).err());
                }
                // Report the one for the newest state.
                let violation = violations.first().filter(|_| violations.len() == base.history.len());
                assert_eq!(violation, None, "{report:?}");
            }
            let refused = engine.write(batch_of(&[append(NEW_GROUP, 1, &[100])]), Durability::Synced);
            assert!(matches!(refused, Err(LogError::ReadOnly)), "{refused:?}");
            writer.finish();
        }
        Err(error) => assert!(is_damage_error(&error) || matches!(error, LogError::NoLog), "{error}"),
    }
    assert_eq!((self::files(&disk), disk.changes()), (files.clone(), 0), "salvaged, but changed");
}

/// Arbitrary files: any of them may be refused, and nothing panics.
fn hostile(files: &Files, options: &LogOptions, operation: u8) {
    let modes: &[RecoveryMode] = match operation {
        OPEN => &[RecoveryMode::TruncateTail, RecoveryMode::Strict],
        SALVAGE => &[RecoveryMode::Salvage],
        INSPECT => return tools::inspect_arbitrary(files),
        _ => return tools::repair_arbitrary(files, options),
    };
    for recovery in modes.iter().copied() {
        for deep in [false, true] {
            let disk = disk_with(files);
            let options = LogOptions { recovery, verify: deep, keep_doubtful: deep, ..options.clone() };
            exercise(&disk, &options, recovery).unwrap_or_else(|error| assert!(is_refusal(&error), "{error}"));
            assert!(recovery != RecoveryMode::Salvage || self::files(&disk) == *files, "salvaged, but changed");
        }
    }
}

fn is_refusal(error: &LogError) -> bool {
    is_damage_error(error) || matches!(error, LogError::TornTail { .. } | LogError::NoLog)
}

/// Opens a log, reads it and writes to it.
fn exercise(disk: &SimDisk, options: &LogOptions, recovery: RecoveryMode) -> Result<()> {
    let (engine, mut writer, _) = open(disk, options)?;
    if let Err(error) = observe(&engine) {
        let lost = recovery == RecoveryMode::Salvage && matches!(error, LogError::Lost { .. });
        assert!(lost || is_damage_error(&error), "{error}");
    }
    for round in 0..4 {
        let batch = batch_of(&[append(NEW_GROUP, round + 1, &[100])]);
        // The log may refuse the batch or be poisoned; purge reads data that was not read yet.
        let _ = engine.submit_with(batch, Durability::Synced, Box::new(drop));
        let _ = engine.purge(Budget::default());
        writer.turn();
    }
    Ok(())
}
