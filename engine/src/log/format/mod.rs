//! The bytes of a log file: headers, blocks, metas, the index of a sealed file. No I/O. See also `docs/formats.md`.
//!
//! A file is a header and commit groups. A sealed file ends with its index and, in its last bytes, a footer:
//!
//! ```text
//! 0           data_offset                                                   length - 64
//! | file header |  group | group | pad | group | ...        | index | zeros  | footer |
//!
//! group:  | header 64 | block | block | ... | meta | pad |
//! block:  | header 16 | stored bytes | 0..7 zeros |
//! ```
//!
//! Every checksum is a CRC-32 seeded with the log's identity, the file's number and the offset of the covered bytes
//! ([`Place`]). So bytes of another log, another file or another offset never pass. A group's checksum covers its header
//! and its meta, and the meta lists the checksums of the blocks. So one checksum covers the whole group, and a single
//! block can be verified alone. The next group's header repeats the checksum: groups form a chain.
//!
//! # Layers
//!
//! Lowest first. No file imports from a later layer.
//!
//! 1. `numbers`, `place`, `write_buffer`: encodings, locations, the buffer of one write
//! 2. `compress`, `file_header`, `group_header`: codecs and headers
//! 3. `items`: the meta of a commit group
//! 4. `block`, `file_index`: entries of a commit group, and the index of a sealed file

mod block;
mod compress;
mod file_header;
mod file_index;
mod group_header;
mod items;
mod numbers;
mod place;
mod write_buffer;

pub(crate) use self::block::{Block, BlockBuilder, DraftBlock};
pub use self::compress::Compression;
pub(crate) use self::compress::{Compressor, MAX_BATCH_BYTES, compress_lz4, decompress};
pub(crate) use self::file_header::{FOOTER, FileHeader, Footer, HeaderError, MAX_FILES, PAGE, REUSED, VERSION};
pub(crate) use self::file_index::{GroupHead, IndexGroup, IndexKey, IndexReader, apply_group, encode_group};
pub(crate) use self::group_header::{BLOCK_HEADER, BlockHeader, GROUP_HEADER, GroupHeader};
pub(crate) use self::items::{
    BLOCK_ENTRIES, BlockRef, Item, Sink, Span, decode_meta, encode_blocks, encode_items, replay,
};
pub(crate) use self::numbers::{Cursor, put_varint, varint_len};
pub(crate) use self::place::{Codec, Identity, Place, UNIT, align, file_name, parse_file_name};
pub(crate) use self::write_buffer::WriteBuffer;
