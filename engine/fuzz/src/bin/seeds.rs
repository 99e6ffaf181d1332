//! Writes the seed inputs of fuzzing: `corpus/recover/seed-*` and `corpus/batch_decode/seed-*`, beside the manifest of
//! this package or in the directory given as argument. They are in the repository. A second run writes the same, unless
//! the format, the cases of the model or the targets have changed. Removes older seeds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use engine::log::fuzzing;
use engine::{Cf, WriteBatch};
use engine_fuzz::bases::{Base, bases};
use engine_fuzz::{batch_decode, mutate, recover};

/// The most samples for one decoder, and the most raw files: small seeds are best.
const SAMPLES: usize = 3;
/// The longest raw file.
const RAW_BYTES: usize = 6000;

fn main() -> std::io::Result<()> {
    let named = std::env::args().nth(1).map(PathBuf::from);
    let corpus = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus"));
    for (target, inputs) in [("recover", recovers()), ("batch_decode", decodes())] {
        let dir = corpus.join(target);
        std::fs::create_dir_all(&dir)?;
        for old in std::fs::read_dir(&dir)? {
            let old = old?;
            if old.file_name().to_string_lossy().starts_with("seed-") {
                std::fs::remove_file(old.path())?;
            }
        }
        for (number, input) in inputs.iter().enumerate() {
            std::fs::write(dir.join(format!("seed-{number:03}")), input)?;
        }
        println!("{} inputs in {}", inputs.len(), dir.display());
    }
    Ok(())
}

/// Each log without damage; a change of each kind, near the start of a file and near its end, each in another log; and
/// raw files.
fn recovers() -> Vec<Vec<u8>> {
    let count = bases().len() as u8;
    let operations = [recover::OPEN, recover::SALVAGE, recover::INSPECT, recover::REPAIR];
    let operation = |number: usize| operations[number % operations.len()];
    let undamaged =
        (0..count).map(|number| vec![number, recover::plan(recover::DAMAGE, operation(usize::from(number)))]);
    let mut out: Vec<Vec<u8>> = undamaged.collect();
    for change in 0..mutate::KINDS {
        for (place, damage) in [(0x4008u16, recover::DAMAGE), (0x8020, recover::FORGE)] {
            let [low, high] = place.to_le_bytes();
            let plan = recover::plan(damage, operation(usize::from(change)));
            out.push(vec![out.len() as u8 % count, plan, change, change, low, high, 3, 0, 16, 8]);
        }
    }
    let mut files: Vec<Vec<u8>> = (0..).zip(bases()).filter_map(|(number, base)| raw(number, base)).collect();
    files.sort_by_key(Vec::len);
    out.extend(files.into_iter().take(SAMPLES));
    out
}

/// The short files of a log as an input.
fn raw(number: u8, base: &Base) -> Option<Vec<u8>> {
    let mut out = vec![number, recover::plan(recover::RAW, recover::OPEN)];
    for content in base.files.values().filter(|content| (4097..RAW_BYTES).contains(&content.len())) {
        out.extend_from_slice(&(content.len() as u16).to_le_bytes());
        out.extend_from_slice(content);
    }
    (out.len() > 2).then_some(out)
}

/// The encoded parts of the logs, and a write batch.
fn decodes() -> Vec<Vec<u8>> {
    let mut by_decoder: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
    let logs = bases().iter().flat_map(|base| base.files.iter()).filter(|(name, _)| name.ends_with(".log"));
    for sample in logs.flat_map(|(_, content)| fuzzing::samples(content)) {
        by_decoder.entry(sample.decoder).or_default().push(sample.bytes);
    }
    let mut batch = WriteBatch::new();
    batch.put(Cf::Default, b"key", b"value");
    batch.delete(Cf::Lock, b"key");
    batch.delete_range(Cf::Write, b"from", b"");
    by_decoder.entry(batch_decode::WRITE_BATCH).or_default().push(batch.as_bytes().to_vec());
    let mut out = Vec::new();
    for (decoder, mut samples) in by_decoder {
        samples.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        samples.dedup();
        // A short one, a long one, and one in between.
        let chosen = (0..SAMPLES).map(|at| at * samples.len().saturating_sub(1) / (SAMPLES - 1));
        let mut chosen: Vec<usize> = chosen.collect();
        chosen.dedup();
        out.extend(chosen.into_iter().map(|at| [&[decoder], samples[at].as_slice()].concat()));
    }
    out
}
