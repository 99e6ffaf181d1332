//! What a salvaged log may show: the content of the sound log, or a typed error.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use engine::log::{GroupId, LogEngine, LogError, RecoveryReport};

use super::State;

/// Checks that a salvaged log shows only the content of the sound log, or typed errors. Groups that the report does not
/// name are complete, except for entries in damaged blocks. Returns the number of entries read.
pub fn check_salvaged(engine: &LogEngine, report: &RecoveryReport, state: &State) -> std::result::Result<u64, String> {
    let mut read = 0;
    let ids: BTreeSet<u64> =
        state.0.keys().copied().chain(engine.groups().into_iter().map(|id| id.0)).chain([4711]).collect();
    for id in ids {
        let (group, known) = (GroupId(id), state.0.get(&id).cloned().unwrap_or_default());
        let is_named = report.lost.iter().any(|loss| loss.group == group);
        let blind = report.losses.iter().any(|loss| loss.concerns.is_none());
        let last = known.entries.keys().next_back().copied().unwrap_or(known.floor.max(1) - 1);
        for index in 0..last + 3 {
            let (found, real) = (engine.entry(group, index), known.entries.get(&index));
            let fits = match &found {
                Ok(entry) => Some(entry) == real,
                Err(LogError::NotFound { .. }) => real.is_none() && (index > last || !state.0.contains_key(&id)),
                Err(LogError::Compacted { .. }) => real.is_none() && index <= last,
                Err(LogError::Lost { group: lost, .. }) => *lost == group && (is_named || blind),
                Err(LogError::Corrupt { groups, .. }) => groups.contains(&group),
                Err(_) => false,
            };
            read += u64::from(found.is_ok());
            if !fits {
                let (real, found) = (real.map(Bytes::len), found.map(|entry| entry.len()));
                return Err(format!("entry {id}/{index} has {real:?} bytes, and reads {found:?}"));
            }
        }
        for key in [&[0u8][..], &[1], &[2], &[3], b"hard", b"nothing"] {
            let (found, real) = (engine.get(group, key), known.keys.get(key));
            let fits = match &found {
                Ok(value) => value.as_ref().map(|value| value.as_ref()) == real.map(Vec::as_slice),
                Err(error) => matches!(error, LogError::Lost { .. }) && (is_named || blind),
            };
            if !fits {
                return Err(format!("key {key:?} of {id} is {real:?}, and reads {found:?}"));
            }
        }
        let pairs = engine.scan(group);
        let text = |pairs: engine::log::Result<Vec<(Bytes, Bytes)>>| pairs.map_err(|error| error.to_string());
        if engine.bounds(group).is_some() && text(engine.scan_range(group, &[], None)) != text(engine.scan(group)) {
            return Err(format!("the keys of {id} differ between scan and scan_range"));
        }
        let owned = |(key, value): &(Bytes, Bytes)| (key.to_vec(), value.to_vec());
        let fits = match &pairs {
            Ok(pairs) => pairs.iter().map(owned).collect::<BTreeMap<_, _>>() == known.keys,
            Err(error) => matches!(error, LogError::Lost { .. }),
        };
        if !fits {
            return Err(format!("keys of {id} read {pairs:?}"));
        }
        let Some(bounds) = engine.bounds(group) else { continue };
        match engine.entries(group, bounds.first, bounds.last + 1, usize::MAX) {
            Ok(entries) => {
                let real = known.entries.range(bounds.first..bounds.last + 1).map(|(_, entry)| entry);
                if !entries.iter().eq(real) {
                    return Err(format!("entries of {id} differ within {bounds:?}"));
                }
            }
            Err(LogError::Lost { .. } | LogError::Corrupt { .. }) => {}
            Err(error) => return Err(format!("entries of {id} in {bounds:?}: {error}")),
        }
    }
    Ok(read)
}
