//! A bar on stderr that shows how far long work is; nothing where stderr is no terminal, or where what is printed meanwhile goes to one too.

use std::io::{self, IsTerminal};

use engine::log::tools::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar. Gone from the terminal when dropped.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// A bar that says what is being done.
    pub(super) fn new(what: &'static str) -> Bar {
        Bar::drawn(what, is_drawn(io::stderr().is_terminal(), false))
    }

    /// The same for work that prints to stdout meanwhile: on one terminal the two would be drawn over each other.
    pub(super) fn beside_output(what: &'static str) -> Bar {
        Bar::drawn(what, is_drawn(io::stderr().is_terminal(), io::stdout().is_terminal()))
    }

    fn drawn(what: &'static str, drawn: bool) -> Bar {
        let target = if drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
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

/// Whether a bar is drawn, by whether stderr is a terminal, and whether lines are printed to one meanwhile.
fn is_drawn(stderr: bool, lines: bool) -> bool {
    stderr && !lines
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::is_drawn;

    #[test]
    fn a_bar_is_not_drawn_over_lines() {
        assert!(is_drawn(true, false), "stdout goes elsewhere");
        assert!(!is_drawn(true, true), "both go to the terminal");
        assert!(!is_drawn(false, false) && !is_drawn(false, true), "stderr goes elsewhere");
    }
}
