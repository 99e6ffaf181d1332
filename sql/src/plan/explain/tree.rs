//! A plan as EXPLAIN shows it: nodes with their properties, whatever the format. Pure data.

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExplainNode {
    /// What it is for the node above it; `None` for the root.
    pub(super) relation: Option<Relation>,
    /// Its line in text: `Index Scan using i on t`.
    pub(super) title: String,
    /// Its "Node Type".
    pub(super) kind: &'static str,
    /// Properties that its title tells already.
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// Further properties, one on a line.
    pub(super) details: Vec<(&'static str, Value)>,
    /// The rows that it is expected to give; `None` if nothing is known.
    pub(super) estimate: Option<Estimate>,
    /// What a run has counted; `None` without one.
    pub(super) run: Option<NodeTotals>,
    pub(super) children: Vec<ExplainNode>,
}

impl ExplainNode {
    /// A node whose type is its title.
    pub(super) fn of(kind: &'static str) -> ExplainNode {
        ExplainNode { title: kind.to_owned(), kind, ..ExplainNode::default() }
    }

    /// A node with a title of its own.
    pub(super) fn titled(kind: &'static str, title: String) -> ExplainNode {
        ExplainNode { title, kind, ..ExplainNode::default() }
    }

    pub(super) fn attribute(mut self, name: &'static str, value: impl Into<Value>) -> ExplainNode {
        self.attributes.push((name, value.into()));
        self
    }

    pub(super) fn detail(&mut self, name: &'static str, value: impl Into<Value>) {
        self.details.push((name, value.into()));
    }

    /// Adds a child.
    pub(super) fn add(&mut self, relation: Relation, child: ExplainNode) {
        self.children.push(ExplainNode { relation: Some(relation), ..child });
    }
}

/// What a node is for the one above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The first input.
    Outer,
    /// The second input.
    Inner,
    /// One of several inputs.
    Member,
    /// A query of WITH, by its title.
    InitPlan(String),
    /// The query of an expression, by its title.
    SubPlan(String),
}

impl Relation {
    /// As "Parent Relationship".
    pub(super) fn name(&self) -> &'static str {
        match self {
            Relation::Outer => "Outer",
            Relation::Inner => "Inner",
            Relation::Member => "Member",
            Relation::InitPlan(_) => "InitPlan",
            Relation::SubPlan(_) => "SubPlan",
        }
    }

    /// Its title.
    pub(super) fn title(&self) -> Option<&str> {
        match self {
            Relation::InitPlan(title) | Relation::SubPlan(title) => Some(title),
            _ => None,
        }
    }
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// Several texts.
    List(Vec<String>),
    Number(u64),
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<Vec<String>> for Value {
    fn from(texts: Vec<String>) -> Value {
        Value::List(texts)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number)
    }
}

/// What a node is expected to give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// The number of rows of a loop.
    pub(super) rows: f64,
}

/// What a run has counted of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NodeTotals {
    /// The milliseconds until the first rows of a loop, and until its end; `None` if they are not measured.
    pub(super) times: Option<(f64, f64)>,
    /// The rows of all loops.
    pub(super) rows: u64,
    /// How often it has begun.
    pub(super) loops: u64,
}

impl NodeTotals {
    /// The rows of a loop.
    pub(super) fn rows_per_loop(&self) -> f64 {
        self.rows as f64 / self.loops.max(1) as f64
    }
}
