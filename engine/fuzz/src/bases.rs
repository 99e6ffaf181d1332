//! The logs that are damaged: written by the engine, each of them small, together with all that the engine can do to a file.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use engine::disk::{Disk, SimDisk};
use engine::log::{Compression, Durability, LogOptions};

use crate::log_model::cases::{Case, case, does};
use crate::log_model::{Change, Driver, History};

/// The files of a log, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A sound log and what is in it.
pub struct Base {
    pub options: LogOptions,
    pub files: Files,
    pub history: History,
}

impl Base {
    fn of(driver: &Driver) -> Base {
        // Room for a queue that nobody fills costs more than all else that opening does.
        let options = LogOptions { queue_batches: 16, ..driver.options.clone() };
        Base { options, files: files(&driver.disk), history: driver.history.clone() }
    }
}

/// All files of a disk, as a reader sees them.
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

/// A case with all of its steps.
fn whole(name: &str) -> Base {
    let case = case(name);
    let mut driver = case.prepared();
    case.run(&mut driver);
    Base::of(&driver)
}

/// Each log that a case broken off at some change leaves while its newest file is empty: the file before is not sealed, or half, or
/// just so.
fn rotating(case: &Case) -> Vec<Base> {
    let prepared = case.prepared();
    let stops = 0..case.changes(&prepared);
    let broken_off = stops.map(|stop| {
        let mut driver = prepared.fork();
        driver.disk.halt_after(stop);
        case.run(&mut driver);
        Base::of(&driver)
    });
    broken_off.filter(|base| base.files.values().any(|content| content.len() == 4096)).collect()
}

/// Entries that compress, and more than one block of them.
fn compressed(compression: Compression) -> Base {
    let options = LogOptions { compress_from: 0, compression, ..case("append into new space").options };
    let mut driver = Driver::new(options);
    for round in 0..6u64 {
        let entries = (0..4).map(|at| format!("{round} {at} ").repeat(200).into()).collect();
        let put = Change::Put { group: 2, key: vec![b'k'; 90], value: vec![round as u8; 90] };
        does(&mut driver, vec![Change::Append { group: 1, first: round * 4 + 1, entries }, put], Durability::Synced);
    }
    Base::of(&driver)
}

/// All of them. Inputs name them by number: new ones go to the end.
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
            "purge from the middle",
            "purge",
            "stop",
        ];
        let mut bases: Vec<Base> = names.into_iter().map(whole).collect();
        bases.extend([Compression::Lz4, Compression::Zstd(3)].map(compressed));
        bases.extend(rotating(&case("rotate")));
        bases
    })
}
