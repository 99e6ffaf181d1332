//! Planted bugs: the checks of the other tests detect them.
//!
//! First the checker alone: for each invariant, a history and a state that violates it. Then the disk: each sync of the
//! log is skipped once, the disk lies in each way, a file is removed too early, an old file reappears. Bugs must be
//! detected; harmless faults must not be reported.

use std::collections::BTreeMap;

use engine::disk::{Disk, Lie, Operation};
use engine::log::Durability;

use crate::model::cases::{Case, append, case, cases, entry, put, write};
use crate::model::check::{check_once, recovered, refusal};
use crate::model::{After, Change, Driver, History, Observed, State, Violation, each_crash, open};

/// The number of different crashes to try at each power failure, in search of one that shows a bug.
const CRASHES: usize = 60;

/// A history of three batches: the first is acknowledged as synced, the second as written.
fn history() -> History {
    let batches = [
        vec![append(1, 1, &[10, 11, 12]), put(1, "k", "v")],
        vec![append(1, 3, &[20]), put(2, "k", "v")],
        vec![Change::Compact { group: 1, first_kept: 2 }, append(1, 4, &[30])],
    ];
    let mut history = History::default();
    for batch in batches {
        let after = history.latest().after(&batch).unwrap();
        history.push(batch, after, None);
    }
    (history.synced, history.current) = (1, 2);
    history
}

fn broken(history: &History, seen: &Observed, after: After) -> u8 {
    history.judge(seen, after).unwrap_err().invariant
}

#[test]
fn the_checker_names_the_violated_invariant() {
    let history = history();
    let states: Vec<Observed> = history.iter().map(State::seen).collect();
    for (at, state) in states.iter().enumerate() {
        let fine = |after| history.judge(state, after) == Ok(at);
        assert_eq!((fine(After::Crash), fine(After::Process)), (at >= 1, at >= 2));
    }
    assert_eq!(broken(&history, &states[0], After::Crash), 1, "a synced batch is gone");
    assert_eq!(broken(&history, &states[1], After::Process), 6, "an acknowledged batch is gone");

    let part = history[1].after(&[put(2, "k", "v")]).unwrap().seen();
    assert_eq!(broken(&history, &part, After::Crash), 2, "half a batch");

    let skipped = history[1].after(&[Change::Compact { group: 1, first_kept: 2 }, put(2, "k", "v")]).unwrap();
    assert_eq!(broken(&history, &skipped.seen(), After::Crash), 3, "parts of two batches");

    let mut later = history.clone();
    later.synced = 3;
    assert_eq!(broken(&later, &states[1], After::Crash), 4, "overwritten and compacted entries are back");
    let mut back = states[3].clone();
    back.get_mut(&1).unwrap().keys.push((b"j".to_vec(), b"v".to_vec()));
    assert_eq!(broken(&later, &back, After::Crash), 5, "a key that was never set");
    let mut wrong = states[3].clone();
    wrong.get_mut(&1).unwrap().entries[0] = entry(3, 3, 3);
    assert_eq!(broken(&later, &wrong, After::Crash), 5, "bytes that were never written");
    let mut hole = states[3].clone();
    hole.get_mut(&1).unwrap().entries.pop();
    assert_eq!(broken(&later, &hole, After::Crash), 7, "an entry is missing");

    let mut purged = history.clone();
    (purged.synced, purged.current, purged.purged) = (3, 3, true);
    assert_eq!(broken(&purged, &states[1], After::Crash), 8, "purge changed something");

    let mut full = history.clone();
    let batch = vec![append(1, 5, &[40])];
    full.refuse(batch.clone());
    let trace = full.latest().after(&batch).unwrap().seen();
    assert_eq!(broken(&full, &trace, After::Crash), 11, "a batch that found no space");
    assert_eq!(full.judge_live(&states[3]).unwrap_err().invariant, 11, "a batch that was not acknowledged is shown");
}

/// Runs a case on a faulty disk up to a power failure. Returns the violation, if one is found.
fn found(case: &Case, prepared: &Driver, plant: impl Fn(&Driver)) -> Option<Violation> {
    let mut driver = prepared.fork();
    plant(&driver);
    case.run(&mut driver);
    if driver.disk.failures_left() > 0 {
        // The power fails before the bug.
        return None;
    }
    let mut violation = driver.live().err();
    each_crash(&driver.disk, CRASHES, |disk| {
        if violation.is_none() {
            violation = check_once(disk, &driver.options, &driver.history, After::Crash).err();
        }
    });
    violation
}

/// The first violation at any power failure.
fn found_anywhere(case: &Case, prepared: &Driver, plant: impl Fn(&Driver)) -> Option<Violation> {
    (0..=case.changes(prepared)).find_map(|stop| {
        found(case, prepared, |driver| {
            plant(driver);
            driver.disk.halt_after(stop);
        })
    })
}

/// The number of calls of this kind in the steps of a case.
fn calls(case: &Case, prepared: &Driver, operation: Operation) -> u64 {
    let mut driver = prepared.fork();
    let before = driver.disk.calls(operation);
    case.run(&mut driver);
    driver.disk.calls(operation) - before
}

/// What a run of the case leaves out if its `nth` sync of a file is skipped.
fn skipped(case: &Case, prepared: &Driver, nth: u64) -> Vec<String> {
    let mut driver = prepared.fork();
    driver.disk.skip_nth(Operation::Sync, nth);
    case.run(&mut driver);
    driver.disk.skipped()
}

/// The syncs of a file that is sealed by the steps.
#[derive(PartialEq)]
enum SealSync {
    /// Of the groups before the seal.
    Groups,
    /// Of the seal.
    Seal,
}

/// Which of the last two syncs of a sealed file the `nth` one is. No third file exists after the steps.
fn seal_sync(case: &Case, prepared: &Driver, nth: u64, syncs: u64) -> Option<SealSync> {
    let of = |nth| skipped(case, prepared, nth);
    let [name] = &of(nth)[..] else { return None };
    let mut driver = prepared.fork();
    case.run(&mut driver);
    // Or dropped since.
    let is_sealed = driver.disk.content(name).is_none_or(|content| {
        let footer = content.len().saturating_sub(64);
        content[footer..].starts_with(b"CORTSEAL")
    });
    let is_newer = |other: &String| other.ends_with(".log") && other > name;
    let newer = Disk::list(driver.disk.as_ref()).unwrap().iter().filter(|other| is_newer(other)).count();
    if newer != 1 || !is_sealed || !name.ends_with(".log") {
        return None;
    }
    match (nth + 1..=syncs).filter(|later| of(*later) == [name.clone()]).count() {
        0 => Some(SealSync::Seal),
        1 => Some(SealSync::Groups),
        _ => None,
    }
}

/// Skipping any sync is detected, with four exceptions: syncs of spare files, whose content is never trusted; syncs of
/// the directory after files were removed, which recovery would remove again; that of the mark of a clean stop; and
/// that of a seal before a third file exists, because recovery reads the groups of the newest two files. The sync of
/// the groups before a seal is missed only if a group shares no sector with the index.
#[test]
fn each_skipped_sync_is_detected() {
    let mut missed_groups = 0;
    for case in cases() {
        let prepared = case.prepared();
        let syncs = calls(&case, &prepared, Operation::Sync);
        for (operation, nth) in
            (1..=syncs).map(|nth| (Operation::Sync, nth)).chain((1..).map(|nth| (Operation::SyncDir, nth)))
        {
            let mut driver = prepared.fork();
            driver.disk.skip_nth(operation, nth);
            case.run(&mut driver);
            if driver.disk.failures_left() > 0 {
                break;
            }
            let left_out = driver.disk.skipped();
            // Zeros over the beginning of a reserve that is made of zeros.
            let are_zeros = |name: &str| case.name == "purge on a full disk" && name.ends_with(".spare");
            let is_harmless = |name: &String| match operation {
                Operation::Sync if are_zeros(name) => true,
                Operation::Sync => name.ends_with(".spare.tmp (length)") || (case.name == "stop" && nth == syncs),
                _ => name.ends_with(".spare") || driver.disk.content(name).is_none(),
            };
            let seal_sync = (operation == Operation::Sync).then(|| seal_sync(&case, &prepared, nth, syncs)).flatten();
            let harmless = seal_sync == Some(SealSync::Seal) || left_out.iter().all(is_harmless);
            let found = found_anywhere(&case, &prepared, |driver| driver.disk.skip_nth(operation, nth));
            let context = format!("{}, {operation:?} {nth} of {left_out:?}", case.name);
            if seal_sync == Some(SealSync::Groups) {
                missed_groups += u32::from(found.is_some());
                continue;
            }
            assert_eq!(found.is_none(), harmless, "{context}: {found:?}");
        }
    }
    assert!(missed_groups > 0, "no sync of groups before a seal was missed");
}

/// Groups of the next file are acknowledged before the full file is synced: the skipped sync is the one that comes with
/// the first synced group of the next file.
#[test]
fn an_acknowledgement_in_the_next_file_before_the_full_one_is_synced_is_detected() {
    let case = case("rotate, sealed late");
    let prepared = case.prepared();
    let full = "0000000000000001.log";
    let first = (1..9).find(|nth| skipped(&case, &prepared, *nth) == [full]).unwrap();
    let violation = found_anywhere(&case, &prepared, |driver| driver.disk.skip_nth(Operation::Sync, first));
    let violation = violation.unwrap();
    // The lost batch overwrote an entry, whose old value is back.
    assert_eq!(violation.invariant, 4, "sync {first}: {violation}");
    assert!(violation.what.contains("must be visible"), "sync {first}: {violation}");
}

/// A disk that always lies, in each way.
#[test]
fn each_lie_of_the_disk_is_detected() {
    let noticed = |lie: Lie, concerned: &str| {
        let found = |case: &Case| found_anywhere(case, &case.prepared(), |driver| driver.disk.set_lies(&[lie]));
        let concerned: Vec<Case> = cases().into_iter().filter(|case| case.name.contains(concerned)).collect();
        let names = concerned.iter().filter_map(|case| Some((case.name, found(case)?.invariant)));
        (concerned.len(), names.collect::<BTreeMap<_, _>>())
    };
    let (all, found) = noticed(Lie::FileSync, "");
    assert_eq!(found.len(), all, "{found:?}");
    let (all, found) = noticed(Lie::DirSync, "rotate");
    assert_eq!(found.len(), all, "{found:?}");
    let (all, found) = noticed(Lie::StaleOverwrites, "recycle");
    assert_eq!(found.len(), all, "{found:?}");
    // Recovery removes a dropped file that reappears.
    let (all, found) = noticed(Lie::OldNames, "purge");
    assert!(all > 2 && found.is_empty(), "{found:?}");
}

/// A write that does not even reach the page cache.
#[test]
fn each_skipped_write_is_detected() {
    let case = case("append into new space");
    let prepared = case.prepared();
    for nth in 1..=6 {
        let violation = found(&case, &prepared, |driver| driver.disk.skip_nth(Operation::Write, nth));
        assert!(violation.is_some(), "write {nth}");
    }
}

/// A file is removed before its replacement is durable.
#[test]
fn a_file_removed_too_early_is_detected() {
    let case = case("purge");
    let prepared = case.prepared();
    let first = Disk::list(prepared.disk.as_ref()).unwrap().remove(0);
    let mut driver = prepared.fork();
    Disk::remove(driver.disk.as_ref(), &first).unwrap();
    driver.disk.sync_dir().unwrap();
    case.run(&mut driver);
    driver.disk.crash(0);
    // Purge read the open file and rewrote its live records, so nothing is missed afterwards.
    recovered(&driver.disk, &driver.options, &driver.history, After::Crash).map(drop).unwrap();
    let early = prepared.fork();
    early.disk.lose(&first);
    early.disk.crash(0);
    let violation = recovered(&early.disk, &early.options, &early.history, After::Crash).map(drop).unwrap_err();
    assert_eq!(violation.invariant, 9, "{violation}");
}

/// Old files that reappear unchanged are ignored: dropped ones, and one under the name of a spare.
#[test]
fn an_old_file_that_reappears_is_harmless() {
    // The second file of the third case.
    let gap = case("purge behind batches").prepared();
    for name in ["purge", "purge, keeping spares", "purge a file with a gap after it"] {
        let case = case(name);
        let mut driver = case.prepared();
        let old: Vec<(String, Vec<u8>)> = {
            let names = Disk::list(driver.disk.as_ref()).unwrap();
            let content = |name: &str| driver.disk.content(name).or_else(|| gap.disk.content(name)).unwrap();
            let names = names.into_iter().chain(["0000000000000002.log".to_owned()]);
            names.map(|name| (name.clone(), content(&name))).collect()
        };
        case.run(&mut driver);
        let newest =
            Disk::list(driver.disk.as_ref()).unwrap().into_iter().rfind(|name| name.ends_with(".log")).unwrap();
        for (name, content) in old.iter().filter(|(name, _)| *name < newest) {
            let twin = driver.disk.fork();
            if twin.content(name).is_none() {
                twin.set_content(name, content.clone());
            }
            twin.set_content("0000000000000099.spare", content.clone());
            recovered(&twin, &driver.options, &driver.history, After::Crash)
                .map(drop)
                .unwrap_or_else(|what| panic!("{name}: {what}"));
        }
    }
}

/// An early acknowledgement, and one for a batch that was split in two.
#[test]
fn wrong_acknowledgements_are_detected() {
    let case = case("append into new space");
    let mut early = case.prepared();
    write(&mut early, vec![append(1, 1, &[100])], Durability::Buffered);
    early.history.synced = early.history.current;
    let lost = (0..20).find_map(|seed| {
        let twin = early.disk.fork();
        twin.crash(seed);
        recovered(&twin, &early.options, &early.history, After::Crash).map(drop).err()
    });
    assert_eq!(lost.unwrap().invariant, 1);

    let mut split = case.prepared();
    let whole = vec![append(1, 1, &[600]), append(2, 1, &[600])];
    for change in &whole {
        write(&mut split, vec![change.clone()], Durability::Buffered);
    }
    let mut history = History::default();
    let after = history.latest().after(&whole).unwrap();
    history.push(whole, after, None);
    let torn = (0..50).find_map(|seed| {
        let twin = split.disk.fork();
        twin.crash(seed);
        recovered(&twin, &split.options, &history, After::Crash).map(drop).err()
    });
    assert_eq!(torn.unwrap().invariant, 2);
}

/// An acknowledgement after a failed sync, as if a retry had reported success.
#[test]
fn an_acknowledgement_after_a_failed_sync_is_detected() {
    let mut driver = case("append into new space").prepared();
    driver.disk.fail_nth(Operation::Sync, 1, std::io::ErrorKind::Other);
    // The sync of another file fails, and the log does not learn of it.
    let other = driver.disk.create("other").unwrap();
    other.sync().unwrap_err();
    driver.submit(vec![append(1, 1, &[10])], Durability::Synced);
    assert_eq!(driver.try_turn().unwrap_err().invariant, 10);
}

/// Damage to a file is not reported as the result of a crash.
#[test]
fn damage_is_not_mistaken_for_a_crash() {
    let driver = case("rotate").prepared();
    let twin = driver.fork();
    case("rotate").run(&mut driver.fork());
    let name = Disk::list(twin.disk.as_ref()).unwrap().remove(0);
    let mut content = twin.disk.content(&name).unwrap();
    content[100] ^= 1;
    content[40] ^= 1;
    twin.disk.set_content(&name, content);
    let violation = open(&twin.disk, &twin.options).map(drop).map_err(refusal).unwrap_err();
    assert_eq!(violation.invariant, 12);
}
