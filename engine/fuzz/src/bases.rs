//! The base logs to damage, and what is allowed of a log made from them. The engine wrote them. Each is small; together
//! they contain every operation of the engine on a file.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use engine::disk::{Disk, SimDisk};
use engine::log::{Compression, Durability, GroupId, LogEngine, LogError, LogOptions};

use crate::log_model::cases::{Case, case, write};
use crate::log_model::{Change, Driver, History};

/// The files of a log, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A sound log and its content.
pub struct Base {
    pub options: LogOptions,
    pub files: Files,
    pub history: History,
}

impl Base {
    fn of(driver: &Driver) -> Base {
        // A large queue that stays empty would be the largest cost of opening.
        let options = LogOptions { queue_batches: 16, ..driver.options.clone() };
        Base { options, files: files(&driver.disk), history: driver.history.clone() }
    }
}

/// All files of a disk as readers see them.
pub fn files(disk: &SimDisk) -> Files {
    let names = disk.list().unwrap_or_default();
    names.into_iter().filter_map(|name| disk.content(&name).map(|content| (name, content))).collect()
}

/// A disk with these files.
pub fn disk_with(files: &Files) -> Arc<SimDisk> {
    let disk = SimDisk::new();
    files.iter().for_each(|(name, content)| disk.set_content(name, content.clone()));
    disk
}

/// A case with all its steps.
fn whole(name: &str) -> Base {
    let case = case(name);
    let mut driver = case.prepared();
    case.run(&mut driver);
    Base::of(&driver)
}

/// The logs of a case interrupted at each change while its newest file is empty: the previous file is not sealed,
/// partly, or just sealed.
fn rotating(case: &Case) -> Vec<Base> {
    let prepared = case.prepared();
    let stops = 0..case.changes(&prepared);
    let interrupted = stops.map(|stop| {
        let mut driver = prepared.fork();
        driver.disk.halt_after(stop);
        case.run(&mut driver);
        Base::of(&driver)
    });
    interrupted.filter(|base| base.files.values().any(|content| content.len() == 4096)).collect()
}

/// Compressible entries in more than one block.
fn compressed(compression: Compression) -> Base {
    let options = LogOptions { compress_from: 0, compression, ..case("append into new space").options };
    let mut driver = Driver::new(options);
    for round in 0..6u64 {
        let entries = (0..4).map(|at| format!("{round} {at} ").repeat(200).into()).collect();
        let put = Change::Put { group: 2, key: vec![b'k'; 90], value: vec![round as u8; 90] };
        write(&mut driver, vec![Change::Append { group: 1, first: round * 4 + 1, entries }, put], Durability::Synced);
    }
    Base::of(&driver)
}

/// All base logs. Inputs select them by number: add new ones at the end.
pub fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| {
        let names = [
            "append, packed",
            "append into new space",
            "append into zeros",
            "rotate",
            "recycle",
            "purge, keeping spares",
        ];
        let mut bases: Vec<Base> = names.into_iter().map(whole).collect();
        // Its steps drop the files around the gap.
        bases.push(Base::of(&case("purge a file with a gap after it").prepared()));
        bases.extend(["purge", "stop"].map(whole));
        bases.extend([Compression::Lz4, Compression::Zstd(3)].map(compressed));
        bases.extend(rotating(&case("rotate")));
        bases
    })
}

/// Whether an error is a typed one about the content of the files.
pub fn is_damage_error(error: &LogError) -> bool {
    use LogError::{Corrupt, Misplaced, Missing, Version};
    matches!(error, Corrupt { .. } | Missing { .. } | Misplaced { .. } | Version { .. })
}

/// Whether every readable entry and key was once written there.
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
