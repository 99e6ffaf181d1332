//! Findings of damage in the files of a surveyed log.

use crate::log::error::{Finding, LogError, Result};
use crate::log::format::parse_file_name;
use crate::log::read::{CommitGroup, GroupReader};
use crate::log::salvage::{ExistingFile, Gap, Survey};

/// Findings in the blocks of a commit group, which are all read, verified and decoded.
pub(super) fn damaged_blocks(reader: &mut GroupReader<'_>, group: &CommitGroup) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for block in &group.blocks {
        if let Err(damage) = reader.check_block(block)? {
            findings.push(Finding::new(&reader.file.name, block.offset, damage.0, group.groups_in(block)));
        }
    }
    Ok(findings)
}

/// The finding of a gap between the commit groups of file `at` in the list.
pub(super) fn gap_finding(survey: &Survey, at: usize, found: &ExistingFile, gap: &Gap) -> Finding {
    Finding::new(&found.file.name, gap.from, gap.damage.0, survey.changed_in(at).unwrap_or_default())
}

/// The finding of a damaged seal of file `at` in the list. The newest file has none, nor may
/// the one before it.
pub(super) fn seal_finding(survey: &Survey, at: usize, found: &ExistingFile) -> Option<Finding> {
    if survey.may_be_unsealed(at) {
        return None;
    }
    found.file.sealed().err().map(|error| file_finding(survey, &error))
}

/// The finding of a problem with a whole file, with the groups that it changes if the next file's header lists them.
pub(super) fn file_finding(survey: &Survey, problem: &LogError) -> Finding {
    let mut finding = Finding::of(problem, "");
    // A binary search, because many files may be missing.
    let seq = parse_file_name(&finding.file);
    let at = seq.and_then(|seq| survey.files.binary_search_by_key(&seq, |file| file.seq).ok());
    if finding.groups.is_empty() {
        finding.groups = at.and_then(|at| survey.changed_in(at)).unwrap_or_default();
    }
    finding
}
