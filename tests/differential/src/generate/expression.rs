//! Expressions of a given type: literals of all kinds, parameters, columns, and what makes values of them.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::catalog::{Catalog, Function, Operator, TypeOid};
use crate::generate::literal::{self, oids};
use crate::generate::producers::{Producer, Producers};
use crate::generate::texts::useful_texts;
use crate::tree::{Parameter, Part, Tree};

/// A column that an expression may name.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name, as an expression writes it.
    pub name: String,
    /// Its type.
    pub of: TypeOid,
}

/// What generates the expressions of one statement.
pub struct Expressions<'a> {
    /// The source of all choices.
    pub rng: &'a mut StdRng,
    /// What both servers have.
    pub catalog: &'a Catalog,
    /// The same, by type.
    pub producers: &'a Producers,
    /// The columns in reach.
    pub columns: Vec<Column>,
    /// Whether parameters may be used.
    pub has_parameters: bool,
}

impl Expressions<'_> {
    /// One of a list.
    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.random_range(0..from.len())]
    }

    /// Whether something that happens in one case of `of` happens.
    pub fn one_in(&mut self, of: u32) -> bool {
        self.rng.random_ratio(1, of)
    }

    /// A type of which there are values. Scalars are more frequent than arrays.
    pub fn any_type(&mut self) -> TypeOid {
        if self.one_in(5) {
            let types = self.producers.types.clone();
            return self.choose(&types);
        }
        self.choose(&literal::SCALARS)
    }

    /// An expression of a type.
    pub fn of(&mut self, goal: TypeOid, depth: u32) -> Tree {
        if depth == 0 || self.one_in(6) {
            return self.leaf(goal);
        }
        match self.rng.random_range(0..100) {
            0..60 => self.produced(goal, depth).unwrap_or_else(|| self.leaf(goal)),
            60..78 => self.cast(goal, depth),
            78..90 if goal == oids::BOOL => self.condition(depth),
            _ => self.form(goal, depth),
        }
    }

    /// A literal, a parameter or a column.
    pub fn leaf(&mut self, goal: TypeOid) -> Tree {
        let columns: Vec<String> = self.columns.iter().filter(|c| c.of == goal).map(|c| c.name.clone()).collect();
        if !columns.is_empty() && !self.one_in(4) {
            let at = self.rng.random_range(0..columns.len());
            return Tree::atom(columns[at].clone());
        }
        let name = self.catalog.name(goal).to_string();
        if self.one_in(16) {
            return Tree::atom(format!("NULL::{name}"));
        }
        let value = literal::value(self.rng, self.catalog, goal);
        if self.has_parameters && self.one_in(3) {
            return self.parameter(goal, value);
        }
        let numeric = [oids::INT4, oids::INT8, oids::NUMERIC];
        let is_plain =
            numeric.contains(&goal) && value.parse::<f64>().is_ok_and(f64::is_finite) && !value.contains(' ');
        match self.rng.random_range(0..10) {
            0..5 if is_plain && value.starts_with('-') => Tree::atom(format!("({value})")),
            0..5 if is_plain => Tree::atom(value),
            0..2 if goal == oids::BOOL => Tree::atom(if value.starts_with(['t', '1', 'y']) { "true" } else { "false" }),
            0..7 => Tree::atom(format!("{}::{name}", literal::constant(&value))),
            7 if self.catalog.types[&goal].element.is_none() && !["\"char\"", "character"].contains(&&*name) => {
                Tree::atom(format!("{name} {}", literal::constant(&value)))
            }
            _ => Tree::atom(format!("CAST({} AS {name})", literal::constant(&value))),
        }
    }

    fn parameter(&mut self, goal: TypeOid, value: String) -> Tree {
        let value = (!self.one_in(12)).then_some(value);
        match self.rng.random_range(0..3) {
            0 => Tree::expression(vec![Part::Parameter(Parameter { declared: goal, value })]),
            _ => {
                let parameter = Part::Parameter(Parameter { declared: 0, value });
                Tree::expression(vec![parameter, format!("::{}", self.catalog.name(goal)).into()])
            }
        }
    }

    /// An argument: mostly of the type, sometimes untyped, sometimes of another type.
    pub fn argument(&mut self, declared: TypeOid, depth: u32) -> Tree {
        match self.rng.random_range(0..100) {
            0..5 => {
                let other = self.any_type();
                self.of(other, depth.saturating_sub(1))
            }
            5..18 => {
                let value = literal::value(self.rng, self.catalog, declared);
                Tree::atom(literal::constant(&value))
            }
            18..20 => Tree::atom("NULL"),
            20..28 if self.has_parameters => {
                let value = (!self.one_in(12)).then(|| literal::value(self.rng, self.catalog, declared));
                Tree::expression(vec![Part::Parameter(Parameter { declared: 0, value })])
            }
            _ => self.of(declared, depth.saturating_sub(1)),
        }
    }

    fn produced(&mut self, goal: TypeOid, depth: u32) -> Option<Tree> {
        let list = self.producers.of(self.catalog, goal);
        let producer = *list.choose(self.rng)?;
        Some(match producer {
            Producer::Function(at) => self.call(&self.catalog.functions[at], goal, depth),
            Producer::Operator(at) => self.operation(&self.catalog.operators[at], goal, depth),
        })
    }

    /// A call of a function whose result is `goal`.
    pub fn call(&mut self, function: &Function, goal: TypeOid, depth: u32) -> Tree {
        let other = self.any_type();
        let base = self.producers.base(self.catalog, function.result, goal, other);
        let mut arguments = Vec::new();
        for (at, declared) in function.arguments.iter().enumerate() {
            let texts = useful_texts(function, at);
            if !texts.is_empty() && !self.one_in(8) {
                arguments.push(Tree::atom(literal::constant(self.choose(texts))));
                continue;
            }
            arguments.push(self.declared(*declared, base, depth));
        }
        if function.is_variadic {
            self.spread(function, &mut arguments, base, depth);
        }
        let mut parts: Vec<Part> = vec![format!("{}(", quoted(&function.name)).into()];
        for (at, argument) in arguments.into_iter().enumerate() {
            if at > 0 {
                parts.push(", ".into());
            }
            parts.push(argument.into());
        }
        parts.push(")".into());
        Tree::expression(parts)
    }

    /// An argument of a declared type, which may be polymorphic or a row.
    fn declared(&mut self, declared: TypeOid, base: TypeOid, depth: u32) -> Tree {
        let other = self.any_type();
        match self.producers.argument(self.catalog, declared, base, other) {
            Some(of) => self.argument(of, depth),
            None => self.row(depth),
        }
    }

    /// The array of a variadic function as single arguments, mostly.
    fn spread(&mut self, function: &Function, arguments: &mut Vec<Tree>, base: TypeOid, depth: u32) {
        let Some(last) = arguments.pop() else { return };
        let declared = function.arguments.last().copied().unwrap_or_default();
        if self.one_in(8) && self.catalog.types.get(&declared).is_some_and(|found| found.element.is_some()) {
            arguments.push(Tree::expression(vec!["VARIADIC ".into(), last.into()]));
            return;
        }
        for _ in 0..self.rng.random_range(1..4) {
            let element = self.catalog.types.get(&declared).and_then(|found| found.element).unwrap_or(declared);
            arguments.push(self.declared(element, base, depth));
        }
    }

    fn operation(&mut self, operator: &Operator, goal: TypeOid, depth: u32) -> Tree {
        let other = self.any_type();
        let base = self.producers.base(self.catalog, operator.result, goal, other);
        let right = self.declared(operator.right, base, depth);
        let Some(left) = operator.left else {
            return Tree::expression(vec![format!("({} ", operator.name).into(), right.into(), ")".into()]);
        };
        let left = self.declared(left, base, depth);
        let bare = self.one_in(10);
        let (open, close) = if bare { ("", "") } else { ("(", ")") };
        let name = format!(" {} ", operator.name);
        Tree::expression(vec![open.into(), left.into(), name.into(), right.into(), close.into()])
    }

    fn cast(&mut self, goal: TypeOid, depth: u32) -> Tree {
        let sources: Vec<TypeOid> =
            self.catalog.casts.iter().filter(|(_, to)| *to == goal).map(|(from, _)| *from).collect();
        let sources: Vec<TypeOid> = sources.into_iter().filter(|of| self.producers.types.contains(of)).collect();
        let from = if sources.is_empty() || self.one_in(4) { self.any_type() } else { self.choose(&sources) };
        let inner = self.of(from, depth - 1);
        let name = self.catalog.name(goal).to_string();
        let name = self.with_modifier(goal, name);
        if self.one_in(3) {
            return Tree::expression(vec!["CAST(".into(), inner.into(), format!(" AS {name})").into()]);
        }
        Tree::expression(vec!["(".into(), inner.into(), format!(")::{name}").into()])
    }

    /// A type's name, sometimes with a length, precision or scale.
    fn with_modifier(&mut self, of: TypeOid, name: String) -> String {
        if !self.one_in(3) {
            return name;
        }
        let small = self.rng.random_range(0..8);
        match of {
            oids::VARCHAR => format!("varchar({})", small + 1),
            oids::BPCHAR => format!("char({})", small + 1),
            oids::NUMERIC => format!("numeric({},{})", small + 3, self.rng.random_range(-2..6)),
            oids::TIME => format!("time({small})"),
            oids::TIMETZ => format!("time({small}) with time zone"),
            oids::TIMESTAMP => format!("timestamp({small})"),
            oids::TIMESTAMPTZ => format!("timestamp({small}) with time zone"),
            oids::INTERVAL => {
                let fields =
                    ["year", "month", "day to second", "second(2)", "hour", "hour to minute", "day", "year to month"];
                format!("interval {}", self.choose(&fields))
            }
            oids::FLOAT8 => format!("float({})", small * 8),
            _ => name,
        }
    }

    fn row(&mut self, depth: u32) -> Tree {
        let fields = (0..self.rng.random_range(1..4)).map(|_| {
            let of = self.any_type();
            self.of(of, depth.saturating_sub(1))
        });
        let fields = Tree::list(fields.collect());
        Tree::expression(vec!["ROW(".into(), fields.into(), ")".into()])
    }

    /// A condition in one of the forms of SQL that are no functions.
    pub fn condition(&mut self, depth: u32) -> Tree {
        let of = self.any_type();
        let less = depth.saturating_sub(1);
        let (one, other) = (self.argument(of, depth), self.argument(of, depth));
        let parts: Vec<Part> = match self.rng.random_range(0..13) {
            0 => vec!["(".into(), one.into(), " IS NULL)".into()],
            1 => vec!["(".into(), one.into(), " IS NOT NULL)".into()],
            2 => vec!["(".into(), one.into(), " IS DISTINCT FROM ".into(), other.into(), ")".into()],
            3 => vec!["(".into(), one.into(), " IS NOT DISTINCT FROM ".into(), other.into(), ")".into()],
            4 | 5 => {
                let (low, high) = (other, self.argument(of, depth));
                let word = self.choose(&[" BETWEEN ", " NOT BETWEEN ", " BETWEEN SYMMETRIC "]);
                vec!["(".into(), one.into(), word.into(), low.into(), " AND ".into(), high.into(), ")".into()]
            }
            6 | 7 => {
                let word = self.choose(&[" IN (", " NOT IN ("]);
                let list = (0..self.rng.random_range(1..4)).map(|_| self.argument(of, depth)).collect();
                vec!["(".into(), one.into(), word.into(), Tree::list(list).into(), "))".into()]
            }
            8 => {
                let (text, word) =
                    (self.argument(oids::TEXT, depth), self.choose(&[" LIKE ", " NOT ILIKE ", " SIMILAR TO ", " ~ "]));
                let pattern = self.choose(&["'a%'", "'_b%'", "'%\\%%'", "'[a-c]+'", "'(a|b)%'", "''", "'%'"]);
                vec!["(".into(), text.into(), word.into(), pattern.into(), ")".into()]
            }
            9 => {
                let (a, b) = (self.of(oids::BOOL, less), self.of(oids::BOOL, less));
                vec!["(".into(), a.into(), self.choose(&[" AND ", " OR ", " = "]).into(), b.into(), ")".into()]
            }
            10 => vec!["(NOT ".into(), self.of(oids::BOOL, less).into(), ")".into()],
            11 => {
                let test =
                    self.choose(&[" IS TRUE)", " IS NOT TRUE)", " IS FALSE)", " IS UNKNOWN)", " IS NOT UNKNOWN)"]);
                vec!["(".into(), self.argument(oids::BOOL, depth).into(), test.into()]
            }
            _ => self.quantified(of, one, other, depth),
        };
        Tree::expression(parts)
    }

    /// `a = ANY (array)`, or a comparison of rows.
    fn quantified(&mut self, of: TypeOid, one: Tree, other: Tree, depth: u32) -> Vec<Part> {
        let comparison = self.choose(&[" = ", " <> ", " < ", " >= "]);
        match self.catalog.array_of(of) {
            Some(array) if self.one_in(2) => {
                let (array, word) = (self.argument(array, depth), self.choose(&["ANY (", "ALL ("]));
                vec!["(".into(), one.into(), comparison.into(), word.into(), array.into(), "))".into()]
            }
            _ => {
                let second = self.any_type();
                let (a, b) = (self.argument(second, depth), self.argument(second, depth));
                let row = |x: Tree, y: Tree| Tree::fixed(vec!["(".into(), x.into(), ", ".into(), y.into(), ")".into()]);
                vec!["(".into(), row(one, a).into(), comparison.into(), row(other, b).into(), ")".into()]
            }
        }
    }

    /// A form of SQL that is no function and has a value of any type.
    fn form(&mut self, goal: TypeOid, depth: u32) -> Tree {
        let (one, other) = (self.argument(goal, depth), self.argument(goal, depth));
        let element = self.catalog.types.get(&goal).and_then(|found| found.element);
        let parts: Vec<Part> = match self.rng.random_range(0..10) {
            0..2 => {
                let condition = self.of(oids::BOOL, depth - 1);
                let tail = Tree::optional(vec![" ELSE ".into(), other.into()]);
                vec!["CASE WHEN ".into(), condition.into(), " THEN ".into(), one.into(), tail.into(), " END".into()]
            }
            2 => {
                let (value, when) = (self.argument(goal, depth), self.argument(goal, depth));
                let tail: Part = Tree::optional(vec![" ELSE ".into(), other.into()]).into();
                let head: [Part; 6] =
                    ["CASE ".into(), value.into(), " WHEN ".into(), when.into(), " THEN ".into(), one.into()];
                head.into_iter().chain([tail, " END".into()]).collect()
            }
            3 => vec!["NULLIF(".into(), one.into(), ", ".into(), other.into(), ")".into()],
            4..7 => {
                let name = self.choose(&["COALESCE(", "GREATEST(", "LEAST("]);
                vec![name.into(), Tree::list(vec![one, other]).into(), ")".into()]
            }
            _ if element.is_some() => self.array(element.unwrap_or(goal), depth),
            7 if self.catalog.array_of(goal).is_some() => {
                let array = self.catalog.array_of(goal).unwrap_or(goal);
                let (array, at) = (self.of(array, depth - 1), self.argument(oids::INT4, depth));
                vec!["(".into(), array.into(), ")[".into(), at.into(), "]".into()]
            }
            _ => self.syntax(goal, depth),
        };
        Tree::expression(parts)
    }

    fn array(&mut self, element: TypeOid, depth: u32) -> Vec<Part> {
        if self.one_in(4) {
            let array = self.catalog.array_of(element).unwrap_or(element);
            let slice = self.choose(&["[1:2]", "[2:]", "[:1]", "[0:5]", "[3:1]"]);
            return vec!["(".into(), self.of(array, depth - 1).into(), format!("){slice}").into()];
        }
        let items = (0..self.rng.random_range(1..4)).map(|_| self.argument(element, depth)).collect();
        vec!["ARRAY[".into(), Tree::list(items).into(), "]".into()]
    }

    /// Functions with a syntax of their own.
    fn syntax(&mut self, goal: TypeOid, depth: u32) -> Vec<Part> {
        let less = depth - 1;
        match goal {
            oids::TEXT => {
                let text = self.argument(oids::TEXT, depth);
                let [from, length] = [0, 1].map(|_| self.of(oids::INT4, less));
                match self.rng.random_range(0..4) {
                    0 => vec![
                        "SUBSTRING(".into(),
                        text.into(),
                        " FROM ".into(),
                        from.into(),
                        " FOR ".into(),
                        length.into(),
                        ")".into(),
                    ],
                    1 => vec![
                        self.choose(&["TRIM(BOTH ' a' FROM ", "TRIM(LEADING FROM ", "TRIM(TRAILING 'x' FROM "]).into(),
                        text.into(),
                        ")".into(),
                    ],
                    2 => vec!["OVERLAY(".into(), text.into(), " PLACING 'xyz' FROM ".into(), from.into(), ")".into()],
                    _ => vec!["SUBSTRING(".into(), text.into(), " FROM 'a(.)c?')".into()],
                }
            }
            oids::INT4 => {
                vec![
                    "POSITION(".into(),
                    self.argument(oids::TEXT, depth).into(),
                    " IN ".into(),
                    self.argument(oids::TEXT, depth).into(),
                    ")".into(),
                ]
            }
            oids::NUMERIC => {
                let field =
                    self.choose(&["year", "epoch", "dow", "second", "century", "week", "timezone", "julian", "decade"]);
                let from = self.choose(&[
                    oids::DATE,
                    oids::TIMESTAMP,
                    oids::TIMESTAMPTZ,
                    oids::INTERVAL,
                    oids::TIME,
                    oids::TIMETZ,
                ]);
                vec![format!("EXTRACT({field} FROM ").into(), self.argument(from, depth).into(), ")".into()]
            }
            oids::TIMESTAMP | oids::TIMESTAMPTZ | oids::TIMETZ => {
                let from = self.choose(&[oids::TIMESTAMP, oids::TIMESTAMPTZ, oids::TIMETZ, oids::TIME]);
                let zone = self.choose(&[
                    "'UTC'",
                    "'Europe/Berlin'",
                    "'America/New_York'",
                    "INTERVAL '2 hours'",
                    "'PST'",
                    "'+03'",
                ]);
                vec!["(".into(), self.argument(from, depth).into(), format!(" AT TIME ZONE {zone})").into()]
            }
            _ => vec!["(".into(), self.of(goal, less).into(), ")".into()],
        }
    }
}

/// A name, in quotes where the grammar has another use for it.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_syntax = [
        "overlay",
        "position",
        "substring",
        "trim",
        "extract",
        "char",
        "varchar",
        "bpchar",
        "numeric",
        "time",
        "timestamp",
        "timestamptz",
        "timetz",
        "interval",
        "int4",
        "int8",
        "int2",
        "float4",
        "float8",
        "bool",
        "text",
        "name",
        "bit",
        "xml",
        "json",
        "date",
        "like",
        "notlike",
        "normalize",
        "regtype",
        "regclass",
        "oid",
    ];
    if is_plain && !is_syntax.contains(&name) { name.to_string() } else { format!("pg_catalog.\"{name}\"") }
}
