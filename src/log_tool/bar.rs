//! A bar on stderr that shows how far long work is; nothing where stderr is no terminal.

use std::io::{self, IsTerminal};

use engine::log::tools::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar. Gone from the terminal when dropped.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar that says what is being done.
    pub(super) fn new(what: &'static str) -> Bar {
        let bar = ProgressBar::with_draw_target(
            None,
            if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        let line = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(line) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Bar(bar)
    }

    /// Shows how far it is.
    pub(super) fn show(&self, progress: Progress) {
        self.0.set_length(progress.total);
        self.0.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
