//! `cortado check table`: compares tables with their indexes, at one snapshot.

use std::error::Error;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::client::{self, ClientError};
use crate::config::HostPort;
use crate::console;
use crate::proto::{CheckTablesRequest, CheckedTable};

/// The result for a table.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Checked {
    table: String,
    rows: u64,
    entries: u64,
    differences: u64,
    /// The first differences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    described: Vec<String>,
}

impl Checked {
    fn to_text(&self) -> String {
        let outcome = match self.differences {
            0 => "ok".to_owned(),
            1 => "1 difference".to_owned(),
            several => format!("{several} differences"),
        };
        let mut text = format!("{}: {} rows, {} index entries: {outcome}", self.table, self.rows, self.entries);
        for line in &self.described {
            text.push_str("\n  ");
            text.push_str(line);
        }
        text
    }
}

impl From<CheckedTable> for Checked {
    fn from(found: CheckedTable) -> Checked {
        let CheckedTable { table, rows, entries, differences, described, .. } = found;
        Checked { table, rows, entries, differences, described }
    }
}

/// Compares tables at `host` and prints a line for each. How far it is goes to a terminal. Fails if a table differs.
pub(crate) async fn run(
    host: &HostPort,
    database: String,
    tables: Vec<String>,
    json: bool,
) -> Result<(), Box<dyn Error>> {
    let mut node = client::connect(host, None).await?;
    let request = CheckTablesRequest { database, tables };
    let answer = node.check_tables(request).await.map_err(|status| ClientError::refused(host, &status))?;
    let mut messages = answer.into_inner();
    let mut differences = 0;
    while let Some(found) = messages.message().await.map_err(|status| ClientError::refused(host, &status))? {
        if !found.is_done {
            if io::stderr().is_terminal() {
                // For people, who may do without it.
                let _ =
                    writeln!(io::stderr(), "{}: {} rows, {} index entries ...", found.table, found.rows, found.entries);
            }
            continue;
        }
        differences += found.differences;
        let found = Checked::from(found);
        console::print_line(if json { serde_json::to_string(&found)? } else { found.to_text() })?;
    }
    match differences {
        0 => Ok(()),
        _ => Err("an index differs from its table".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_lines() {
        let mut found =
            Checked { table: "public.t".into(), rows: 3, entries: 6, differences: 0, described: Vec::new() };
        assert_eq!(found.to_text(), "public.t: 3 rows, 6 index entries: ok");
        (found.differences, found.described) = (2, vec!["index t_v_idx: no entry".into()]);
        assert_eq!(found.to_text(), "public.t: 3 rows, 6 index entries: 2 differences\n  index t_v_idx: no entry");
    }
}
