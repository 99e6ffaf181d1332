//! EXPLAIN (FORMAT JSON): PostgreSQL's document, laid out as there.

use std::fmt::Write;

use super::tree::{ExplainNode, Value};

/// The document of a statement. `summary`: times of planning and of the run, by their names, in milliseconds.
pub(super) fn document(root: &ExplainNode, summary: &[(&'static str, f64)]) -> String {
    let mut out = String::from("[\n  {\n    \"Plan\": ");
    put(root, 4, &mut out);
    for (name, milliseconds) in summary {
        // Writes to a string do not fail.
        let _ = write!(out, ",\n    {}: {milliseconds:.3}", quoted(name));
    }
    out.push_str("\n  }\n]");
    out
}

/// Adds a node. `indent`: the spaces before its braces.
fn put(node: &ExplainNode, indent: usize, out: &mut String) {
    let inner = " ".repeat(indent + 2);
    let mut fields: Vec<(&str, String)> = vec![("Node Type", quoted(node.kind))];
    if let Some(relation) = &node.relation {
        fields.push(("Parent Relationship", quoted(relation.name())));
        fields.extend(relation.title().map(|title| ("Subplan Name", quoted(title))));
    }
    fields.extend([("Parallel Aware", "false".to_owned()), ("Async Capable", "false".to_owned())]);
    fields.extend(node.attributes.iter().map(|(name, value)| (*name, json(value))));
    fields.extend(node.estimate.map(|estimate| ("Plan Rows", format!("{:.0}", estimate.rows))));
    if let Some(run) = &node.run {
        if let Some((first, all)) = run.times {
            fields.push(("Actual Startup Time", format!("{first:.3}")));
            fields.push(("Actual Total Time", format!("{all:.3}")));
        }
        fields.push(("Actual Rows", format!("{:.0}", run.rows_per_loop())));
        fields.push(("Actual Loops", run.loops.to_string()));
    }
    fields.extend(node.details.iter().map(|(name, value)| (*name, json(value))));
    out.push('{');
    for (at, (name, value)) in fields.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\n{inner}{}: {value}", quoted(name));
    }
    if !node.children.is_empty() {
        let _ = write!(out, ",\n{inner}\"Plans\": [");
        for (at, child) in node.children.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(out, "{comma}\n{inner}  ");
            put(child, indent + 4, out);
        }
        let _ = write!(out, "\n{inner}]");
    }
    let _ = write!(out, "\n{}}}", " ".repeat(indent));
}

fn json(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::List(texts) => format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")),
        Value::Number(number) => number.to_string(),
    }
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::explain::tree::{NodeTotals, Relation};

    #[test]
    fn a_document_is_laid_out_as_postgres_does() {
        let mut root = ExplainNode::of("Limit");
        root.run = Some(NodeTotals { times: None, rows: 3, loops: 2 });
        let mut scan = ExplainNode::titled("Seq Scan", "Seq Scan on t".to_owned()).attribute("Relation Name", "t\"\\");
        scan.detail("Filter", "(a = 'x\n\u{1}'::text)");
        scan.detail("Sort Key", vec!["a".to_owned(), "b".to_owned()]);
        root.add(Relation::Outer, scan);
        let text = document(&root, &[("Planning Time", 0.5)]);
        let expected = r#"[
  {
    "Plan": {
      "Node Type": "Limit",
      "Parallel Aware": false,
      "Async Capable": false,
      "Actual Rows": 2,
      "Actual Loops": 2,
      "Plans": [
        {
          "Node Type": "Seq Scan",
          "Parent Relationship": "Outer",
          "Parallel Aware": false,
          "Async Capable": false,
          "Relation Name": "t\"\\",
          "Filter": "(a = 'x\n\u0001'::text)",
          "Sort Key": ["a", "b"]
        }
      ]
    },
    "Planning Time": 0.500
  }
]"#;
        assert_eq!(text, expected);
    }
}
