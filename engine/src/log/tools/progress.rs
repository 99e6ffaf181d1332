//! Progress of a tool.

/// Progress of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Reports progress, once per [`STEP`].
pub(super) struct Meter<'a> {
    report: &'a mut dyn FnMut(Progress),
    progress: Progress,
    reported: u64,
}

/// Interval between two reports, in bytes.
const STEP: u64 = 256 << 10;

impl<'a> Meter<'a> {
    pub(super) fn new(total: u64, report: &'a mut dyn FnMut(Progress)) -> Meter<'a> {
        let progress = Progress { done: 0, total };
        report(progress);
        Meter { report, progress, reported: 0 }
    }

    /// Sets the bytes done.
    pub(super) fn at(&mut self, done: u64) {
        self.progress.done = done.clamp(self.progress.done, self.progress.total.max(self.progress.done));
        if self.progress.done - self.reported >= STEP {
            self.report();
        }
    }

    /// Adds to the bytes done.
    pub(super) fn add(&mut self, bytes: u64) {
        self.at(self.progress.done.saturating_add(bytes));
    }

    /// Adds to the total.
    pub(super) fn add_total(&mut self, bytes: u64) {
        self.progress.total = self.progress.total.saturating_add(bytes);
    }

    /// Reports that all bytes are done.
    pub(super) fn end(&mut self) {
        self.progress.done = self.progress.total;
        self.report();
    }

    fn report(&mut self) {
        self.reported = self.progress.done;
        (self.report)(self.progress);
    }
}
