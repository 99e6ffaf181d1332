//! The CPU time of a process and all its descendants, from /proc.

use std::collections::BTreeMap;
use std::time::Duration;

/// The user and system time of `root` and its live descendants, with that of their finished and awaited children.
pub fn of_tree(root: u32) -> Duration {
    let mut processes = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if let Some((parent, ticks)) =
            std::fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parse)
        {
            processes.insert(pid, (parent, ticks));
        }
    }
    let below = |mut pid: u32| loop {
        if pid == root {
            return true;
        }
        match processes.get(&pid) {
            Some((parent, _)) if *parent != 0 => pid = *parent,
            _ => return false,
        }
    };
    let ticks: u64 = processes.iter().filter(|(pid, _)| below(**pid)).map(|(_, (_, ticks))| ticks).sum();
    // USER_HZ is 100 on every Linux that this runs on.
    Duration::from_millis(ticks * 10)
}

/// The parent and the ticks (of the process and its awaited children) in a line of /proc/PID/stat.
fn parse(stat: &str) -> Option<(u32, u64)> {
    // The command's name is in parentheses and may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}
