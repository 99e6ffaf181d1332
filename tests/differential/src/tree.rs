//! A generated statement as a tree of texts, which can be made smaller without reading SQL: [`crate::shrink`].

/// What may be done to a tree to make it smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing, only to what is in it.
    Fixed,
    /// An expression: one of the expressions inside, or NULL, can stand for it.
    Expression,
    /// It can be left out.
    Optional,
    /// A list, with commas between its parts: all but one can be left out.
    List,
}

/// A parameter of the extended protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The OID of the type that Parse declares; 0 leaves it to the server.
    pub declared: u32,
    /// Its value in text, `None` for NULL.
    pub value: Option<String>,
}

/// A part of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Text as it is sent.
    Text(String),
    /// A smaller tree.
    Tree(Tree),
    /// A parameter: its number is its place in the statement.
    Parameter(Parameter),
}

/// A statement or a piece of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// What may be done to it.
    pub kind: Kind,
    /// What it consists of, in order.
    pub parts: Vec<Part>,
}

impl Tree {
    /// A piece that consists of these parts.
    pub fn fixed(parts: Vec<Part>) -> Tree {
        Tree { kind: Kind::Fixed, parts }
    }

    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Tree {
        Tree::fixed(vec![Part::Text(text.into())])
    }

    /// An expression of these parts.
    pub fn expression(parts: Vec<Part>) -> Tree {
        Tree { kind: Kind::Expression, parts }
    }

    /// An expression that is one text.
    pub fn atom(text: impl Into<String>) -> Tree {
        Tree::expression(vec![Part::Text(text.into())])
    }

    /// A piece that can be left out.
    pub fn optional(parts: Vec<Part>) -> Tree {
        Tree { kind: Kind::Optional, parts }
    }

    /// A list of these pieces.
    pub fn list(items: Vec<Tree>) -> Tree {
        Tree { kind: Kind::List, parts: items.into_iter().map(Part::Tree).collect() }
    }

    /// The text, and the parameters in the order of their numbers.
    pub fn render(&self) -> (String, Vec<Parameter>) {
        let (mut text, mut parameters) = (String::new(), Vec::new());
        self.write(&mut text, &mut parameters);
        (text, parameters)
    }

    fn write(&self, text: &mut String, parameters: &mut Vec<Parameter>) {
        for (at, part) in self.parts.iter().enumerate() {
            if self.kind == Kind::List && at > 0 {
                text.push_str(", ");
            }
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Tree(tree) => tree.write(text, parameters),
                Part::Parameter(parameter) => {
                    parameters.push(parameter.clone());
                    text.push_str(&format!("${}", parameters.len()));
                }
            }
        }
    }

    /// Trees that are this one with one piece less or with one expression simpler.
    pub fn smaller(&self) -> Vec<Tree> {
        let mut found = Vec::new();
        match self.kind {
            Kind::Optional if !self.parts.is_empty() => found.push(Tree::fixed(Vec::new())),
            Kind::List if self.parts.len() > 1 => {
                found.extend((0..self.parts.len()).map(|at| {
                    let mut fewer = self.clone();
                    fewer.parts.remove(at);
                    fewer
                }));
            }
            Kind::Expression => {
                found.extend(self.inner_expressions());
                let null = Tree::atom("NULL");
                if *self != null {
                    found.push(null);
                }
            }
            _ => {}
        }
        for (at, part) in self.parts.iter().enumerate() {
            if let Part::Tree(tree) = part {
                found.extend(tree.smaller().into_iter().map(|smaller| {
                    let mut changed = self.clone();
                    changed.parts[at] = Part::Tree(smaller);
                    changed
                }));
            }
        }
        found
    }

    /// The expressions right below this tree.
    fn inner_expressions(&self) -> Vec<Tree> {
        let trees = self.parts.iter().filter_map(|part| match part {
            Part::Tree(tree) => Some(tree),
            _ => None,
        });
        trees
            .flat_map(|tree| if tree.kind == Kind::Expression { vec![tree.clone()] } else { tree.inner_expressions() })
            .collect()
    }
}

impl From<Tree> for Part {
    fn from(tree: Tree) -> Part {
        Part::Tree(tree)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Part {
        Part::Text(text.to_string())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Part {
        Part::Text(text)
    }
}
