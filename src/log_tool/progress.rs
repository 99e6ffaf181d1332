//! The progress bar of a log command, on stderr. Hidden unless stderr is a terminal, and hidden while lines are printed
//! to a terminal.

use std::io::{self, IsTerminal};

use engine::log::tools::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar. Dropping it clears it from the terminal.
pub(super) struct ProgressDisplay(ProgressBar);

impl ProgressDisplay {
    /// A bar labelled with the work in progress.
    pub(super) fn new(label: &'static str) -> ProgressDisplay {
        ProgressDisplay::with_visibility(label, is_visible(io::stderr().is_terminal(), false))
    }

    /// A bar for work that also prints to stdout: on the same terminal the two would overwrite each other.
    pub(super) fn beside_output(label: &'static str) -> ProgressDisplay {
        ProgressDisplay::with_visibility(label, is_visible(io::stderr().is_terminal(), io::stdout().is_terminal()))
    }

    fn with_visibility(label: &'static str, visible: bool) -> ProgressDisplay {
        let target = if visible { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let line = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(line) {
            bar.set_style(style);
        }
        bar.set_message(label);
        ProgressDisplay(bar)
    }

    /// Updates the bar.
    pub(super) fn show(&self, progress: Progress) {
        self.0.set_length(progress.total);
        self.0.set_position(progress.done);
    }
}

/// Whether the bar is visible, given whether stderr is a terminal and whether lines are printed to one.
fn is_visible(stderr_is_terminal: bool, lines_to_terminal: bool) -> bool {
    stderr_is_terminal && !lines_to_terminal
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::is_visible;

    #[test]
    fn the_bar_never_overwrites_lines() {
        assert!(is_visible(true, false), "stdout goes elsewhere");
        assert!(!is_visible(true, true), "both go to the terminal");
        assert!(!is_visible(false, false) && !is_visible(false, true), "stderr goes elsewhere");
    }
}
