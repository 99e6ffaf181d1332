//! One page of a scan: the first one that advances, as a reader without a kept scan gets it. And the request for all
//! rows.

use engine::store::Reader;
use kv::Key;
use kv::api::ScanRequest;
use kv::error::ActionError;
use kv::mvcc::scanner::{PageLimits, ScanPage, Scanner};
use tso::Timestamp;

/// The page of `request`, with at most about `max_steps` cursor movements a slice.
pub fn scan<R: Reader + ?Sized>(reader: &R, request: &ScanRequest, max_steps: usize) -> Result<ScanPage, ActionError> {
    if request.is_empty() {
        return Ok(ScanPage::empty());
    }
    let limits = PageLimits { pairs: request.limit, bytes: request.max_bytes, steps: max_steps };
    let mut scanner = Scanner::open(reader, request)?;
    loop {
        let page = scanner.next_page(reader, limits)?;
        if page.resume.is_none() || scanner.has_advanced_from(request) {
            return Ok(page);
        }
    }
}

/// The request for all rows, without limits.
pub fn all_rows(start_ts: Timestamp, reverse: bool) -> ScanRequest {
    ScanRequest {
        start: Key::default(),
        end: Key::default(),
        start_ts,
        limit: u32::MAX,
        max_bytes: u32::MAX,
        reverse,
        keys_only: false,
        pass: Vec::new(),
    }
}
