//! EXPLAIN (FORMAT TEXT): PostgreSQL's indented tree.

use super::tree::{ExplainNode, Value};

/// The lines of a tree.
pub(super) fn lines(root: &ExplainNode) -> Vec<String> {
    let mut lines = Vec::new();
    put(root, 0, &mut lines);
    lines
}

/// Adds a node. `indent`: in steps of two spaces; 0 for the root.
fn put(node: &ExplainNode, mut indent: usize, lines: &mut Vec<String>) {
    if let Some(title) = node.relation.as_ref().and_then(|relation| relation.title()) {
        lines.push(format!("{}{title}", spaces(indent)));
        indent += 1;
    }
    let arrow = if indent > 0 { "->  " } else { "" };
    lines.push(format!("{}{arrow}{}{}", spaces(indent), node.title, numbers(node)));
    let inner = if indent > 0 { indent + 3 } else { 1 };
    for (name, value) in &node.details {
        lines.push(format!("{}{name}: {}", spaces(inner), text(value)));
    }
    node.children.iter().for_each(|child| put(child, inner, lines));
}

fn spaces(indent: usize) -> String {
    " ".repeat(indent * 2)
}

/// The estimate of a node and what a run has counted.
fn numbers(node: &ExplainNode) -> String {
    let estimate = node.estimate.map_or_else(String::new, |estimate| format!("  (rows={:.0})", estimate.rows));
    let run = match &node.run {
        None => String::new(),
        Some(run) if run.loops == 0 => " (never executed)".to_owned(),
        Some(run) => {
            let times = run.times.map_or_else(String::new, |(first, all)| format!("time={first:.3}..{all:.3} "));
            format!(" (actual {times}rows={:.0} loops={})", run.rows_per_loop(), run.loops)
        }
    };
    estimate + &run
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::List(texts) => texts.join(", "),
        Value::Number(number) => number.to_string(),
    }
}
