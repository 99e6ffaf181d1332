//! The tables of functions in `docs/compatibility.md` say what is so.

use pgtypes::functions::named;

/// The names in backticks.
fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// What is there, and what is missing, of every row of the table.
fn documented(text: &str) -> (Vec<&str>, Vec<&str>) {
    let section = text.split("### Functions").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let rows = section.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let cells: Vec<Vec<&str>> = rows.map(|row| row.split('|').collect()).collect();
    let column = |at: usize| cells.iter().flat_map(|row| names(row[at])).collect();
    (column(2), column(3))
}

#[test]
fn functions_are_there_or_missing_as_the_documentation_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/compatibility.md");
    let text = std::fs::read_to_string(path).expect("the documentation");
    let (there, missing) = documented(&text);
    assert!(there.len() > 250 && missing.len() < 60, "{} {}", there.len(), missing.len());
    let absent: Vec<_> = there.iter().filter(|name| named(name).is_empty()).collect();
    let present: Vec<_> = missing.iter().filter(|name| !named(name).is_empty()).collect();
    assert!(absent.is_empty() && present.is_empty(), "not there: {absent:?}; not missing: {present:?}");
}

#[test]
fn a_wrong_row_is_seen() {
    let (there, missing) =
        documented("### Functions\n| about | there | missing |\n| x | `abs` `nope` | `lower` |\n\n## Next\n");
    assert_eq!((there, missing), (vec!["abs", "nope"], vec!["lower"]));
    assert!(named("nope").is_empty() && !named("lower").is_empty());
}
