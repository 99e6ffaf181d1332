//! Access for fuzzers to the private decoders, and to the checksums that protect them from random bytes. Only with the
//! feature `fuzzing`; not part of the engine.
//!
//! [`decode`] takes any bytes and panics if a decoder breaks its contract. [`repair`] corrects the checksums of a damaged
//! file. [`proven`] and [`samples`] parse a file without opening the log.

use bytes::Bytes;

use super::error::Damage;
use super::format::{
    BLOCK_HEADER, Block, BlockBuilder, BlockHeader, Codec, Compression, Compressor, Cursor, FOOTER, FileHeader, Footer,
    GROUP_HEADER, GroupHeader, Identity, IndexReader, Place, Span, UNIT, WriteBuffer, decode_meta, decompress,
    encode_blocks, encode_items, replay,
};
use super::index::{FileSummary, Index};
use super::types::GroupId;

const PLACE: Place = Place { identity: Identity(7), seq: 3 };

/// Number of decoders that [`decode`] supports.
pub const DECODERS: u8 = 7;
const META: u8 = 0;
const INDEX: u8 = 1;
const FILE_HEADER: u8 = 2;
const COMMIT_GROUP: u8 = 3;
const BLOCK: u8 = 4;
const SEAL: u8 = 5;
const CODEC: u8 = 6;

/// A seed input for the fuzzing of one decoder.
pub struct Sample {
    /// The decoder that takes it.
    pub decoder: u8,
    /// The encoded bytes.
    pub bytes: Vec<u8>,
}

/// Decodes `bytes` with one of the decoders. Panics if the value changes when it is encoded and decoded again.
pub fn decode(decoder: u8, bytes: &[u8]) {
    match decoder % DECODERS {
        META => meta(bytes),
        INDEX => index(bytes),
        FILE_HEADER => file_header(bytes),
        COMMIT_GROUP => group_header(bytes),
        BLOCK => block(bytes),
        SEAL => footer(bytes),
        _ => codec(bytes),
    }
}

/// The meta of a commit group; the first byte is the number of blocks.
fn meta(bytes: &[u8]) {
    let Some((blocks, bytes)) = bytes.split_first() else { return };
    let Ok((table, changes)) = decode_meta(bytes, u32::from(*blocks), 64) else { return };
    let again = [encode_blocks(&table), encode_items(&changes)].concat();
    assert_eq!(decode_meta(&again, u32::from(*blocks), 64), Ok((table.clone(), changes.clone())));
    let mut summary = FileSummary::default();
    if replay(&changes, &table, PLACE.seq, &mut summary).is_ok() {
        same_index(&summary);
    }
    // Items that do not fit the index are damage as well.
    let _ = replay(&changes, &table, PLACE.seq, &mut Index::new().editor());
}

/// The index of a sealed file. Both readers must agree on whether it is valid, and on the resulting groups.
fn index(bytes: &[u8]) {
    let (at_once, by_group) = (Index::new(), Index::new());
    let summary = FileSummary::decode(bytes, PLACE.seq);
    summary.iter().for_each(same_index);
    let applied = summary.and_then(|summary| summary.apply(PLACE.seq, &mut at_once.editor()));
    assert_eq!(applied.is_ok(), apply_by_group(bytes, &by_group).is_ok());
    if applied.is_ok() {
        assert_eq!(content(&at_once), content(&by_group));
    }
}

/// Applies an index group by group, as recovery does.
fn apply_by_group(bytes: &[u8], index: &Index) -> Result<(), Damage> {
    let mut groups = IndexReader::new(bytes, PLACE.seq)?;
    while let Some(group) = groups.read()? {
        group.apply(PLACE.seq, &mut index.editor())?;
    }
    Ok(())
}

/// A group of an index: floor, runs, keys.
type Content = (GroupId, u64, Vec<Span>, Vec<(Vec<u8>, Vec<u8>)>);

fn content(index: &Index) -> Vec<Content> {
    let of_group = |group: GroupId| {
        index.with(group, |known| {
            let keys = known.keys.iter().map(|entry| (entry.key().to_vec(), entry.value().to_vec())).collect();
            (group, known.floor, known.runs.iter().collect(), keys)
        })
    };
    index.groups().into_iter().filter_map(of_group).collect()
}

fn same_index(summary: &FileSummary) {
    let encoded = summary.encode();
    let again = FileSummary::decode(&encoded, PLACE.seq).map(|summary| summary.encode());
    assert_eq!(again, Ok(encoded));
}

fn file_header(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    drop(FileHeader::decode(&bytes));
    repair_header(&mut bytes, None);
    let Ok(header) = FileHeader::decode(&bytes) else { return };
    assert_eq!(FileHeader::decode(&header.clone().encode()), Ok(header));
}

fn group_header(bytes: &[u8]) {
    let Some((head, meta)) = bytes.split_first_chunk::<GROUP_HEADER>() else { return };
    let _ = GroupHeader::verify(head, PLACE, 64, meta);
    let Ok(header) = GroupHeader::decode(head, PLACE) else { return };
    let (again, checksum) = header.encode(PLACE, 64, meta);
    assert_eq!(GroupHeader::decode(&again, PLACE), Ok(header));
    assert_eq!(GroupHeader::verify(&again, PLACE, 64, meta), Ok(checksum));
    assert!(header.total() >= GROUP_HEADER as u64);
}

fn block(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    drop(Block::decode(&bytes, PLACE, 64));
    repair_block(&mut bytes, PLACE, 64);
    let Ok(block) = Block::decode(&bytes, PLACE, 64) else { return };
    assert!(Block::decode(&bytes, PLACE, 72).is_err(), "a block in another place");
    let entries: Vec<Bytes> = block.entries(0).collect();
    for (ordinal, entry) in (0..).zip(&entries) {
        assert_eq!(block.entry(ordinal).as_ref(), Some(entry), "alone and in sequence");
    }
    for compression in [Compression::Off, Compression::Lz4, Compression::Zstd(1)] {
        let Ok(mut compressor) = Compressor::new(compression, 0) else { continue };
        assert_eq!(built_again(&entries, &mut compressor), entries, "{compression:?}");
    }
}

/// The same entries, cut into small blocks, written and decoded.
fn built_again(entries: &[Bytes], compressor: &mut Compressor) -> Vec<Bytes> {
    let mut builder = BlockBuilder::new(1 << 10, compressor);
    builder.append(GroupId(1), entries);
    let mut again = Vec::new();
    for draft in builder.finish() {
        let mut out = WriteBuffer::default();
        let place = draft.write(&mut out, PLACE, 64);
        let out = out.to_vec();
        assert_eq!(out.len() as u64, place.total());
        let block = Block::decode(&out, PLACE, 64);
        assert!(block.is_ok(), "{:?}", block.map(drop));
        let before = again.len();
        again.extend(block.iter().flat_map(|block| block.entries(0)));
        assert_eq!(again.len() - before, usize::from(place.entries));
    }
    again
}

fn footer(bytes: &[u8]) {
    let Some(bytes) = bytes.first_chunk::<FOOTER>() else { return };
    let _ = Footer::decode(bytes, PLACE, 64);
    let mut bytes = *bytes;
    let checksum = PLACE.checksum(64, &[&bytes[12..]]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    let Some(footer) = Footer::decode(&bytes, PLACE, 64) else { return };
    assert_eq!(Footer::decode(&footer.encode(PLACE, 64), PLACE, 64), Some(footer));
}

/// Compressed bytes with a claimed length in the first three bytes; and the bytes as something to compress.
fn codec(bytes: &[u8]) {
    let Some(([low, middle, high], bytes)) = bytes.split_first_chunk::<3>() else { return };
    let claimed = usize::from(*low) | usize::from(*middle) << 8 | usize::from(*high) << 16;
    for codec in [Codec::Raw, Codec::Lz4, Codec::Zstd] {
        if let Ok(raw) = decompress(codec, bytes, claimed) {
            assert_eq!(raw.len(), claimed);
        }
    }
    for compression in [Compression::Lz4, Compression::Zstd(1)] {
        let Ok(mut compressor) = Compressor::new(compression, 0) else { continue };
        if let Some((codec, packed)) = compressor.compress(bytes) {
            assert!(packed.len() < bytes.len());
            assert_eq!(decompress(codec, &packed, bytes.len()), Ok(bytes.to_vec()));
        }
    }
}

/// The position that a file's bytes prove to be synced, by its header and the group headers that pass their checksums.
/// A file without a header proves nothing.
pub fn proven(content: &[u8]) -> Option<u64> {
    let header = FileHeader::decode(content).ok()?;
    let place = header.place;
    let units = (header.data_offset as usize..content.len()).step_by(UNIT as usize);
    let synced = units.filter_map(|offset| {
        let (head, rest) = content[offset..].split_first_chunk::<GROUP_HEADER>()?;
        let group = GroupHeader::decode(head, place).ok()?;
        let meta = rest.get(group.body as usize..)?.get(..group.meta_stored as usize)?;
        GroupHeader::verify(head, place, offset as u64, meta).ok()?;
        Some(group.synced)
    });
    Some(synced.max().unwrap_or(0).max(header.first_lsn.saturating_sub(1)))
}

/// Corrects the checksums of a file wherever its structure is recognizable, so that damage passes them. Makes it continue
/// the file before, whose last checksum is `chain`. Returns its own last checksum.
pub fn repair(content: &mut [u8], chain: Option<u32>) -> Option<u32> {
    let (place, mut chain, start) = repair_header(content, chain)?;
    let mut offset = start;
    while let Some((checksum, total)) = content.get_mut(offset..).and_then(|group| {
        let total = repair_group(group, place, offset as u64, chain)?;
        Some((u32_at(group, 4)?, total))
    }) {
        chain = checksum;
        offset += total;
    }
    let end = content.len().checked_sub(FOOTER)?;
    let (body, footer) = content.split_at_mut(end);
    if footer.starts_with(b"CORTSEAL") {
        let index = u64::from_le_bytes(footer[16..24].try_into().ok()?);
        let stored = body.get(usize::try_from(index).ok()?..)?.get(..u32_at(footer, 24)? as usize)?;
        footer[12..16].copy_from_slice(&place.checksum(index, &[stored]).to_le_bytes());
        footer[40..44].copy_from_slice(&chain.to_le_bytes());
        let checksum = place.checksum(end as u64, &[&footer[12..]]);
        footer[8..12].copy_from_slice(&checksum.to_le_bytes());
    }
    Some(chain)
}

/// Repairs the header of a file. Returns its place, its chain, and where the groups begin.
fn repair_header(content: &mut [u8], chain: Option<u32>) -> Option<(Place, u32, usize)> {
    let len = u32_at(content, 12)? as usize;
    let header = content.get_mut(..len).filter(|header| header.len() >= 76)?;
    if let Some(chain) = chain {
        header[56..60].copy_from_slice(&chain.to_le_bytes());
    }
    let identity = Identity(u128::from_le_bytes(header[16..32].try_into().ok()?));
    let place = Place { identity, seq: u64::from_le_bytes(header[32..40].try_into().ok()?) };
    let (chain, start) = (u32_at(header, 56)?, u32_at(header, 60)? as usize);
    let checksum = place.checksum(0, &[&header[..len - 4]]);
    header[len - 4..].copy_from_slice(&checksum.to_le_bytes());
    Some((place, chain, start))
}

/// Repairs a group with its blocks at the beginning of `bytes`. Returns its length.
fn repair_group(bytes: &mut [u8], place: Place, offset: u64, chain: u32) -> Option<usize> {
    let (head, rest) = bytes.split_first_chunk_mut::<GROUP_HEADER>()?;
    let header = GroupHeader::decode(head, place).ok()?;
    let (body, rest) = rest.split_at_mut_checked(header.body as usize)?;
    let meta = rest.get_mut(..header.meta_stored as usize)?;
    // A compressed meta lists checksums that cannot be replaced: then the blocks stay as they are.
    let mut listed = 0;
    let mut at = 0;
    while header.meta_codec == Codec::Raw && at < body.len() {
        let block = offset + (GROUP_HEADER + at) as u64;
        let Some((checksum, total)) = repair_block(&mut body[at..], place, block) else { break };
        let mut cursor = Cursor(&meta[listed..]);
        if cursor.varint().and_then(|_| cursor.varint()).is_err() || cursor.is_empty() {
            break;
        }
        listed = meta.len() - cursor.0.len();
        let Some(known) = meta.get_mut(listed..listed + 4) else { break };
        known.copy_from_slice(&checksum.to_le_bytes());
        listed += 4;
        at += total;
    }
    head[24..28].copy_from_slice(&chain.to_le_bytes());
    let checksum = place.checksum(offset, &[&head[8..], meta]);
    head[4..8].copy_from_slice(&checksum.to_le_bytes());
    usize::try_from(header.total()).ok()
}

/// Repairs a block at the beginning of `bytes`. Returns its checksum and length.
fn repair_block(bytes: &mut [u8], place: Place, offset: u64) -> Option<(u32, usize)> {
    let (head, rest) = bytes.split_first_chunk_mut::<BLOCK_HEADER>()?;
    let stored = rest.get(..BlockHeader::decode(head).ok()?.stored as usize)?;
    let checksum = place.checksum(offset, &[&head[4..], stored]);
    head[..4].copy_from_slice(&checksum.to_le_bytes());
    Some((checksum, (BLOCK_HEADER + stored.len()).next_multiple_of(UNIT as usize)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// Samples for each decoder, cut out of a log file.
pub fn samples(content: &[u8]) -> Vec<Sample> {
    let mut out = vec![Sample { decoder: FILE_HEADER, bytes: content.iter().take(256).copied().collect() }];
    let Ok(header) = FileHeader::decode(content) else { return out };
    let mut offset = header.data_offset as usize;
    while let Some((head, rest)) = content.get(offset..).and_then(|rest| rest.split_first_chunk::<GROUP_HEADER>()) {
        let Ok(group) = GroupHeader::decode(head, header.place) else { break };
        let Some((body, rest)) = rest.split_at_checked(group.body as usize) else { break };
        let stored = &rest[..rest.len().min(group.meta_stored as usize)];
        let moved = group.encode(PLACE, 64, stored).0;
        out.push(Sample { decoder: COMMIT_GROUP, bytes: [&moved, stored].concat() });
        if let Ok(raw) = decompress(group.meta_codec, stored, group.meta_raw as usize) {
            out.push(Sample { decoder: META, bytes: [&[group.blocks as u8], raw.as_slice()].concat() });
        }
        if !body.is_empty() && body.len() < 4096 {
            out.push(Sample { decoder: BLOCK, bytes: body.to_vec() });
        }
        offset += group.total() as usize;
    }
    let Some((body, tail)) = content.split_last_chunk::<FOOTER>() else { return out };
    if let Some(footer) = Footer::decode(tail, header.place, body.len() as u64) {
        out.push(Sample { decoder: SEAL, bytes: footer.encode(PLACE, 64).to_vec() });
        let index = &body[footer.index_offset as usize..][..footer.index_stored as usize];
        if let Ok(raw) = decompress(footer.codec, index, footer.index_raw as usize) {
            let claimed = [raw.len() as u8, (raw.len() >> 8) as u8, 0];
            out.push(Sample { decoder: CODEC, bytes: [&claimed, index].concat() });
            out.push(Sample { decoder: INDEX, bytes: raw });
        }
    }
    out
}
