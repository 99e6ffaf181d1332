//! Unit tests across layers: reference counts of the index, bounds of options, decoders that never panic.

use bytes::Bytes;
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::format::{
    BLOCK_HEADER, Block, BlockBuilder, Codec, Compressor, FOOTER, FileHeader, Footer, GROUP_HEADER, GroupHeader,
    Identity, Item, Place, WriteBuffer, decode_meta, decompress, encode_items, file_name, parse_file_name, replay,
};
use super::index::{FileSummary, Group, Index};
use super::read::LogState;
use super::*;
use crate::disk::SimDisk;

const PLACE: Place = Place { identity: Identity(42), seq: 3 };

fn options() -> LogOptions {
    LogOptions {
        file_bytes: 64 << 10,
        prefill_bytes: 0,
        block_bytes: 1 << 10,
        purge_threshold: 0,
        recovery_threads: 1,
        ..LogOptions::default()
    }
}

/// One random change that is valid for what the engine holds.
fn change(rng: &mut StdRng, engine: &LogEngine, batch: &mut LogBatch) {
    let group = GroupId(rng.random_range(1..8));
    let (first, last) = engine.bounds(group).map_or((1, 0), |bounds| (bounds.first, bounds.last));
    match rng.random_range(0..10) {
        0..5 => {
            let at = if rng.random_bool(0.7) { last + 1 } else { rng.random_range(first..=last + 1) };
            let entries = (0..rng.random_range(1..30)).map(|_| {
                let len = rng.random_range(0..600);
                (0..len).map(|_| rng.random::<u8>()).collect::<Bytes>()
            });
            batch.append(group, at, entries.collect());
        }
        5..7 => batch.compact(group, rng.random_range(first..=last + 2)),
        7 => batch.put(group, &[rng.random_range(0..5)], &[rng.random(), 1]),
        8 => batch.delete(group, &[rng.random_range(0..5)]),
        _ if rng.random_bool(0.2) => batch.remove(group),
        _ => {}
    }
}

fn audit(state: &LogState) {
    let counted = state.index.audit();
    for (file, _) in state.files.lengths() {
        assert_eq!(counted.get(&file).copied().unwrap_or_default(), state.index.usage(file), "file {file}");
    }
    let known: Vec<u64> = state.files.lengths().iter().map(|(file, _)| *file).collect();
    assert!(counted.keys().all(|file| known.contains(file)), "an entry refers to a deleted file");
}

/// The usage that purge relies on equals the index: after each turn and after reopening, with rewrites and drops.
#[test]
fn usage_of_files_matches_the_index() {
    for seed in 0..20 {
        let mut rng = StdRng::seed_from_u64(seed);
        let disk = SimDisk::new();
        let mut deleted = 0;
        for _ in 0..4 {
            let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), options()).unwrap();
            audit(writer.pipeline.state());
            for _ in 0..60 {
                let mut batch = LogBatch::new();
                change(&mut rng, &engine, &mut batch);
                engine.submit_with(batch, Durability::Synced, Box::new(|outcome| assert!(outcome.is_ok()))).unwrap();
                deleted += engine.purge(Budget::default()).unwrap().freed;
                writer.turn();
                audit(writer.pipeline.state());
            }
        }
        assert!(deleted > 0, "seed {seed}: nothing was purged");
    }
}

#[test]
fn writes_are_counted() {
    let registry = prometheus::Registry::new();
    let measured = LogOptions { registry: Some(registry.clone()), ..options() };
    let (engine, mut writer, _) = LogEngine::open_driven(SimDisk::new(), measured.clone()).unwrap();
    for index in 1..=3 {
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), index, vec![Bytes::from(vec![b'x'; 1000])]);
        engine.submit_with(batch, Durability::Synced, Box::new(|_| ())).unwrap();
    }
    writer.turn();
    let value = |name: &str| {
        let family = registry.gather().into_iter().find(|family| family.name() == name).unwrap();
        let metric = &family.get_metric()[0];
        metric.get_counter().get_value().max(metric.get_histogram().get_sample_count() as f64) as u64
    };
    assert_eq!((value("cortado_log_groups_total"), value("cortado_log_batches_total")), (1, 3));
    assert_eq!((value("cortado_log_sync_seconds"), value("cortado_log_batches_per_group")), (1, 1));
    assert!(value("cortado_log_raw_bytes_total") > 3000);
    assert!(value("cortado_log_stored_bytes_total") < 1000, "compressed, and not padded");
    assert!(
        matches!(LogEngine::open_driven(SimDisk::new(), measured), Err(LogError::Invalid(_))),
        "one registry, one engine"
    );
}

/// A log written with one setting is read with any other: each block names its codec.
#[test]
fn any_setting_reads_any_codec() {
    let disk = SimDisk::new();
    let settings = [Compression::Off, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(19)];
    let text: Vec<u8> = (0..4000u32).flat_map(|number| format!("row {} ", number % 97).into_bytes()).collect();
    let mut stored = Vec::new();
    for (round, compression) in settings.into_iter().enumerate() {
        let options = LogOptions { compression, ..options() };
        let (engine, writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
        let mut batch = LogBatch::new();
        batch.append(GroupId(1), round as u64 + 1, vec![Bytes::from(text.clone())]);
        engine.write(batch, Durability::Synced).unwrap();
        let entries = engine.entries(GroupId(1), 1, round as u64 + 2, usize::MAX).unwrap();
        assert!(entries.iter().all(|entry| *entry == text));
        let bytes = |group: &Group| group.runs.iter().map(|span| span.bytes).sum::<u64>();
        stored.push(writer.pipeline.state().index.with(GroupId(1), bytes).unwrap());
    }
    let sizes: Vec<u64> = stored.iter().scan(0, |before, now| Some(now - std::mem::replace(before, *now))).collect();
    assert!(sizes[0] > 2 * sizes[1] && sizes[1] > sizes[2] && sizes[2] >= sizes[3], "{sizes:?}");
    let wrong = LogOptions { compression: Compression::Zstd(20), ..options() };
    assert!(matches!(LogEngine::open_driven(SimDisk::new(), wrong), Err(LogError::Invalid(_))));
}

/// A header lists the groups of the file before up to a maximum size; a longer list is omitted.
#[test]
fn file_header_omits_a_too_long_list_of_groups() {
    for (count, listed) in [(1_000_000, true), (1_100_000, false)] {
        let mut header = FileHeader {
            place: PLACE,
            prev_seq: 2,
            first_lsn: 9,
            chain: 8,
            data_offset: 0,
            flags: 0,
            live: vec![(1, 2)],
            changed: Some((1..=count).map(GroupId).collect()),
        };
        let encoded = header.encode();
        let decoded = FileHeader::decode(&encoded).unwrap();
        assert_eq!(decoded.changed.is_some(), listed, "{count} groups");
        assert_eq!(decoded, header);
    }
}

/// A header with one file in each range, of `count` files.
fn header_of_ranges(count: u64) -> FileHeader {
    FileHeader {
        place: Place { seq: 2 * count + 1, ..PLACE },
        prev_seq: 2 * count,
        first_lsn: 9,
        chain: 8,
        data_offset: 0,
        flags: 0,
        live: (1..=count).map(|at| (2 * at, 2 * at)).collect(),
        changed: None,
    }
}

/// The largest list of files is read back, also if no two of them are consecutive.
#[test]
fn file_header_with_many_files_round_trips() {
    for (count, fits) in [(100_000, true), (1 << 20, true), ((1 << 20) + 1, false)] {
        let mut header = header_of_ranges(count);
        assert_eq!(header.fits(), fits, "{count} files");
        let encoded = header.encode();
        assert_eq!(FileHeader::decode(&encoded).ok(), fits.then_some(header), "{count} files");
    }
}

/// A log works at each bound: it writes, rotates, reads, purges, and opens again.
#[test]
fn log_works_at_each_bound_of_its_options() {
    for (name, set, least, greatest) in options::tests::BOUNDS {
        for value in [least, greatest.unwrap_or(u64::MAX)] {
            let options = options::tests::with(set, value);
            let disk = SimDisk::new();
            let (engine, mut writer, _) = LogEngine::open_driven(disk.session(), options.clone()).unwrap();
            for index in 1..=60 {
                let mut batch = LogBatch::new();
                batch.append(GroupId(1), index, vec![vec![index as u8; 3000].into()]);
                batch.append(GroupId(2), index, vec![index.to_le_bytes().to_vec().into()]);
                batch.compact(GroupId(1), index);
                engine.submit_with(batch, Durability::Synced, Box::new(|outcome| assert!(outcome.is_ok()))).unwrap();
                assert_eq!(writer.turn(), 1, "{name} {value}");
                engine.purge(Budget::default()).unwrap();
                writer.turn();
            }
            writer.finish();
            let (engine, _writer, _) = LogEngine::open_driven(disk.session(), options).unwrap();
            let entries = engine.entries(GroupId(2), 1, 61, usize::MAX).unwrap();
            assert!(entries.iter().zip(1u64..).all(|(entry, index)| *entry == index.to_le_bytes().as_slice()));
        }
    }
}

fn item() -> impl Strategy<Value = Item> {
    let group = any::<u64>().prop_map(GroupId);
    let bytes = || prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    prop_oneof![
        (group.clone(), any::<u64>(), any::<u64>()).prop_map(|(group, first, count)| Item::Append {
            group,
            first,
            count
        }),
        (group.clone(), any::<[u64; 4]>()).prop_map(|(group, [floor, last, first, count])| Item::Rewrite {
            group,
            floor,
            last,
            first,
            count
        }),
        (group.clone(), bytes(), bytes()).prop_map(|(group, key, value)| Item::Put { group, key, value }),
        (group.clone(), bytes()).prop_map(|(group, key)| Item::Delete { group, key }),
        (group.clone(), any::<u64>()).prop_map(|(group, first_kept)| Item::Compact { group, first_kept }),
        group.prop_map(|group| Item::Remove { group }),
        any::<u64>().prop_map(|file| Item::Drop { file }),
    ]
}

proptest! {
    #[test]
    fn meta_round_trips(items in prop::collection::vec(item(), 0..20)) {
        let encoded = encode_items(&items);
        prop_assert_eq!(decode_meta(&encoded, 0, 64).unwrap(), (Vec::new(), items));
    }

    #[test]
    fn file_header_round_trips(
        live in prop::collection::btree_set(1u64..50, 0..9),
        changed in prop::option::of(prop::collection::btree_set(any::<u64>(), 0..40)),
        reused in any::<bool>(),
        flip in 0usize..4096,
    ) {
        let mut header = FileHeader {
            place: Place { seq: 51, ..PLACE },
            prev_seq: 50,
            first_lsn: 9,
            chain: 8,
            data_offset: 0,
            flags: u32::from(reused),
            live: live.into_iter().map(|seq| (seq, seq)).collect(),
            changed: changed.map(|groups| groups.into_iter().map(GroupId).collect()),
        };
        let mut encoded = header.encode();
        prop_assert_eq!(FileHeader::decode(&encoded).unwrap(), header.clone());
        let len = header.encoded_len();
        prop_assert!(encoded[len..].iter().all(|byte| *byte == 0));
        encoded[flip % len] ^= 1;
        prop_assert!(FileHeader::decode(&encoded).is_err(), "every byte counts");
    }

    #[test]
    fn block_round_trips(
        entries in prop::collection::vec(prop::collection::vec(0u8..4, 0..600), 1..40),
        compression in prop::sample::select(vec![Compression::Off, Compression::Lz4, Compression::Zstd(3)]),
    ) {
        let entries: Vec<Bytes> = entries.into_iter().map(Bytes::from).collect();
        let mut compressor = Compressor::new(compression, 64).unwrap();
        let mut builder = BlockBuilder::new(1 << 10, &mut compressor);
        builder.append(GroupId(1), &entries);
        let drafts = builder.finish();
        let mut pieces = WriteBuffer::default();
        let mut places = Vec::new();
        for draft in &drafts {
            let at = pieces.len() as u64;
            places.push(draft.write(&mut pieces, PLACE, at));
        }
        let out = pieces.to_vec();
        let mut decoded = Vec::new();
        for place in places {
            let (bytes, at) = (&out[place.offset as usize..], place.offset);
            let block = Block::decode(bytes, PLACE, at).unwrap();
            decoded.extend((0..u32::from(place.entries)).map(|ordinal| block.entry(ordinal).unwrap()));
            prop_assert!(Block::decode(bytes, PLACE, at + 8).is_err(), "not in another place");
            prop_assert!(Block::decode(bytes, Place { seq: 4, ..PLACE }, at).is_err(), "not in another file");
        }
        prop_assert_eq!(decoded, entries);
    }

    #[test]
    fn decoders_do_not_panic(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..9], 0..400),
        blocks in 0u32..9,
    ) {
        if let Ok((table, items)) = decode_meta(&bytes, blocks, 64) {
            let _ = replay(&items, &table, 3, &mut FileSummary::default());
            let _ = replay(&items, &table, 3, &mut Index::new().editor());
        }
        if let Ok(summary) = FileSummary::decode(&bytes, 3) {
            let again = FileSummary::decode(&summary.encode(), 3).unwrap();
            prop_assert_eq!(again.encode(), summary.encode());
            let _ = summary.apply(3, &mut Index::new().editor());
        }
        let _ = FileHeader::decode(&bytes);
        let _ = Block::decode(&bytes, PLACE, 0);
        let _ = Block::parse(Bytes::from(bytes.clone()), blocks as u16);
        for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd] {
            let _ = decompress(codec, &bytes, bytes.len() * blocks as usize);
        }
        if let Some(head) = bytes.first_chunk::<GROUP_HEADER>() {
            let _ = GroupHeader::decode(head, PLACE).map(|header| header.total());
            let _ = Footer::decode(head.first_chunk::<FOOTER>().unwrap(), PLACE, 0);
        }
        prop_assert!(bytes.len() < BLOCK_HEADER || Block::decode(&bytes, PLACE, 8).is_err());
    }

    #[test]
    fn file_names_round_trip(name in "[0-9a-z.]{0,24}", seq in 1u64..1 << 35) {
        prop_assert_eq!(parse_file_name(&file_name(seq)), Some(seq));
        if let Some(seq) = parse_file_name(&name) {
            prop_assert_eq!(file_name(seq), name);
        }
    }
}
