//! Progress of a tool.

/// Progress of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Reports progress, not more often than worthwhile.
pub(super) struct Meter<'a> {
    tell: &'a mut dyn FnMut(Progress),
    progress: Progress,
    told: u64,
}

/// Progress is reported once per so many bytes.
const STEP: u64 = 256 << 10;

impl<'a> Meter<'a> {
    pub(super) fn new(total: u64, tell: &'a mut dyn FnMut(Progress)) -> Meter<'a> {
        let progress = Progress { done: 0, total };
        tell(progress);
        Meter { tell, progress, told: 0 }
    }

    /// So many bytes are done in total.
    pub(super) fn at(&mut self, done: u64) {
        self.progress.done = done.clamp(self.progress.done, self.progress.total.max(self.progress.done));
        if self.progress.done - self.told >= STEP {
            self.tell();
        }
    }

    /// So many more bytes are done.
    pub(super) fn add(&mut self, bytes: u64) {
        self.at(self.progress.done.saturating_add(bytes));
    }

    /// The total grows by so many bytes.
    pub(super) fn more(&mut self, bytes: u64) {
        self.progress.total = self.progress.total.saturating_add(bytes);
    }

    /// Everything is done.
    pub(super) fn end(&mut self) {
        self.progress.done = self.progress.total;
        self.tell();
    }

    fn tell(&mut self) {
        self.told = self.progress.done;
        (self.tell)(self.progress);
    }
}
