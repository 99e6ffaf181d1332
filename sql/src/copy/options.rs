//! The options of COPY, checked with PostgreSQL's errors.

use super::statement::{CopyOption, CopyStatement, OptionValue, Place};
use crate::error::{SqlError, SqlState};

/// Checked options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyOptions {
    /// The format.
    pub(crate) format: DataFormat,
    /// Between two fields.
    pub(crate) delimiter: u8,
    /// What stands for NULL.
    pub(crate) null: String,
    /// The first line.
    pub(crate) header: Header,
    /// The quote of CSV.
    pub(crate) quote: u8,
    /// What escapes a quote of CSV.
    pub(crate) escape: u8,
    /// Columns of COPY TO whose values are always quoted.
    pub(crate) force_quote: ColumnSet,
    /// Columns of COPY FROM that are never NULL.
    pub(crate) force_not_null: ColumnSet,
    /// Columns of COPY FROM where a quoted NULL string is NULL.
    pub(crate) force_null: ColumnSet,
}

/// The format of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFormat {
    /// Lines of fields with escapes.
    Text,
    /// Lines of fields with quotes.
    Csv,
    /// PostgreSQL's binary form.
    Binary,
}

/// What the first line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// A row.
    None,
    /// The names of the columns.
    Names,
    /// The names of the columns, in the right order.
    Match,
}

/// Some of the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnSet {
    /// None.
    None,
    /// All.
    All,
    /// These.
    Named(Vec<String>),
}

/// Options as they were given.
#[derive(Default)]
struct Given<'s> {
    format: Option<DataFormat>,
    delimiter: Option<&'s str>,
    null: Option<&'s str>,
    header: Option<Header>,
    quote: Option<&'s str>,
    escape: Option<&'s str>,
    force_quote: Option<ColumnSet>,
    force_not_null: Option<ColumnSet>,
    force_null: Option<ColumnSet>,
}

impl CopyOptions {
    /// Checks the options of a statement, and that its data is at the client.
    pub(crate) fn of(statement: &CopyStatement) -> Result<CopyOptions, SqlError> {
        check_place(statement)?;
        let mut given = Given::default();
        for (at, option) in statement.options.iter().enumerate() {
            if statement.options[..at].iter().any(|earlier| earlier.name == option.name) {
                return Err(syntax("conflicting or redundant options").at(option.position));
            }
            given.add(option, statement.is_from)?;
        }
        given.check(statement.is_from)
    }
}

/// Only the client's data can be copied: a cluster has no file system that its nodes share.
fn check_place(statement: &CopyStatement) -> Result<(), SqlError> {
    let what = match (statement.place, statement.is_from) {
        (Place::Client, _) => return Ok(()),
        (Place::File, true) => "COPY from a file of the server",
        (Place::File, false) => "COPY to a file of the server",
        (Place::Program, true) => "COPY from an external program",
        (Place::Program, false) => "COPY to an external program",
    };
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
        .hint("Use STDIN or STDOUT; psql's \\copy does so with the client's files and programs."))
}

fn refused(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn syntax(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

impl<'s> Given<'s> {
    /// Adds an option.
    fn add(&mut self, option: &'s CopyOption, is_from: bool) -> Result<(), SqlError> {
        let invalid_at = |message: String| invalid(message).at(option.position);
        match option.name.as_str() {
            "format" => {
                let name = scalar(option)?;
                self.format = Some(match name {
                    "text" => DataFormat::Text,
                    "csv" => DataFormat::Csv,
                    "binary" => DataFormat::Binary,
                    _ => return Err(invalid_at(format!("COPY format \"{name}\" not recognized"))),
                });
            }
            "freeze" => {
                // A hint: there is nothing to freeze.
                boolean(option)?.ok_or_else(|| syntax("freeze requires a Boolean value"))?;
            }
            "delimiter" => self.delimiter = Some(scalar(option)?),
            "null" => self.null = Some(scalar(option)?),
            "header" => self.header = Some(header(option, is_from)?),
            "quote" => self.quote = Some(scalar(option)?),
            "escape" => self.escape = Some(scalar(option)?),
            "force_quote" => self.force_quote = Some(columns(option, true)?),
            "force_not_null" => self.force_not_null = Some(columns(option, false)?),
            "force_null" => self.force_null = Some(columns(option, false)?),
            "encoding" => check_encoding(scalar(option)?, option.position)?,
            other => {
                return Err(syntax(format!("option \"{other}\" not recognized")).at(option.position));
            }
        }
        Ok(())
    }

    fn check(self, is_from: bool) -> Result<CopyOptions, SqlError> {
        let format = self.format.unwrap_or(DataFormat::Text);
        let (is_csv, is_binary) = (format == DataFormat::Csv, format == DataFormat::Binary);
        if is_binary && self.delimiter.is_some() {
            return Err(syntax("cannot specify DELIMITER in BINARY mode"));
        }
        if is_binary && self.null.is_some() {
            return Err(syntax("cannot specify NULL in BINARY mode"));
        }
        let delimiter = one_byte("delimiter", self.delimiter.unwrap_or(if is_csv { "," } else { "\t" }))?;
        let null = self.null.unwrap_or(if is_csv { "" } else { "\\N" });
        if matches!(delimiter, b'\r' | b'\n') {
            return Err(invalid("COPY delimiter cannot be newline or carriage return"));
        }
        if null.contains(['\r', '\n']) {
            return Err(invalid("COPY null representation cannot use newline or carriage return"));
        }
        // They would be taken for escapes.
        if !is_csv && (matches!(delimiter, b'\\' | b'.') || is_escape_letter(delimiter)) {
            return Err(invalid(format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))));
        }
        let header = self.header.unwrap_or(Header::None);
        if is_binary && header != Header::None {
            return Err(refused("cannot specify HEADER in BINARY mode"));
        }
        let (quote, escape) = self.check_quotes(is_csv, delimiter)?;
        self.check_forced(is_csv, is_from)?;
        if null.as_bytes().contains(&delimiter) {
            return Err(refused("COPY delimiter must not appear in the NULL specification"));
        }
        if is_csv && null.as_bytes().contains(&quote) {
            return Err(refused("CSV quote character must not appear in the NULL specification"));
        }
        Ok(CopyOptions {
            format,
            delimiter,
            null: null.to_owned(),
            header,
            quote,
            escape,
            force_quote: self.force_quote.unwrap_or(ColumnSet::None),
            force_not_null: self.force_not_null.unwrap_or(ColumnSet::None),
            force_null: self.force_null.unwrap_or(ColumnSet::None),
        })
    }

    fn check_quotes(&self, is_csv: bool, delimiter: u8) -> Result<(u8, u8), SqlError> {
        if !is_csv && self.quote.is_some() {
            return Err(refused("COPY quote available only in CSV mode"));
        }
        let quote = one_byte("quote", self.quote.unwrap_or("\""))?;
        if is_csv && delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if !is_csv && self.escape.is_some() {
            return Err(refused("COPY escape available only in CSV mode"));
        }
        let escape = self.escape.map_or(Ok(quote), |escape| one_byte("escape", escape))?;
        Ok((quote, escape))
    }

    fn check_forced(&self, is_csv: bool, is_from: bool) -> Result<(), SqlError> {
        let forced = [
            (self.force_quote.is_some(), "force quote", false),
            (self.force_not_null.is_some(), "force not null", true),
            (self.force_null.is_some(), "force null", true),
        ];
        for (is_given, what, for_from) in forced {
            if is_given && !is_csv {
                return Err(refused(format!("COPY {what} available only in CSV mode")));
            }
            if is_given && is_from != for_from {
                let only = if for_from { "FROM" } else { "TO" };
                return Err(refused(format!("COPY {what} only available using COPY {only}")));
            }
        }
        Ok(())
    }
}

fn is_escape_letter(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn one_byte(what: &str, text: &str) -> Result<u8, SqlError> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(refused(format!("COPY {what} must be a single one-byte character"))),
    }
}

fn scalar(option: &CopyOption) -> Result<&str, SqlError> {
    match &option.value {
        OptionValue::Scalar(text) => Ok(text),
        OptionValue::All => Ok("*"),
        OptionValue::Missing | OptionValue::List(_) => Err(syntax(format!("{} requires a parameter", option.name))),
    }
}

/// `None`: it is neither on nor off. A missing value is on.
fn boolean(option: &CopyOption) -> Result<Option<bool>, SqlError> {
    let text = match &option.value {
        OptionValue::Missing => return Ok(Some(true)),
        _ => scalar(option)?.to_ascii_lowercase(),
    };
    Ok(match text.as_str() {
        "1" | "true" | "on" => Some(true),
        "0" | "false" | "off" => Some(false),
        _ => None,
    })
}

fn header(option: &CopyOption, is_from: bool) -> Result<Header, SqlError> {
    match boolean(option)? {
        Some(true) => Ok(Header::Names),
        Some(false) => Ok(Header::None),
        None if !scalar(option)?.eq_ignore_ascii_case("match") => {
            Err(syntax("header requires a Boolean value or \"match\""))
        }
        None if is_from => Ok(Header::Match),
        None => Err(refused("cannot use \"match\" with HEADER in COPY TO")),
    }
}

fn columns(option: &CopyOption, may_be_all: bool) -> Result<ColumnSet, SqlError> {
    match &option.value {
        OptionValue::List(names) => Ok(ColumnSet::Named(names.clone())),
        OptionValue::All if may_be_all => Ok(ColumnSet::All),
        _ => {
            let message = format!("argument to option \"{}\" must be a list of column names", option.name);
            Err(invalid(message).at(option.position))
        }
    }
}

/// The data of text formats is UTF-8.
fn check_encoding(name: &str, position: u32) -> Result<(), SqlError> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if matches!(plain.as_str(), "utf8" | "unicode") {
        return Ok(());
    }
    let known = ["sqlascii", "latin", "iso8859", "win", "windows", "koi8", "euc", "sjis", "big5", "gbk", "gb18030"];
    if known.iter().any(|prefix| plain.starts_with(prefix)) {
        let message = format!("COPY in encoding {name} is not supported");
        return Err(refused(message).hint("Data of COPY is in UTF8."));
    }
    Err(invalid("argument to option \"encoding\" must be a valid encoding name").at(position))
}

#[cfg(test)]
mod tests {
    use super::super::statement::parse;
    use super::*;

    fn options(text: &str) -> Result<CopyOptions, String> {
        let statement = parse(text).unwrap().unwrap();
        CopyOptions::of(&statement).map_err(|error| match error.position {
            Some(at) => format!("{} {} @{at}", error.code.0, error.message),
            None => format!("{} {}", error.code.0, error.message),
        })
    }

    #[test]
    fn defaults_follow_the_format() {
        let text = options("copy t from stdin").unwrap();
        assert_eq!((text.delimiter, text.null.as_str(), text.header), (b'\t', "\\N", Header::None));
        let csv = options("copy t from stdin csv header").unwrap();
        assert_eq!((csv.delimiter, csv.null.as_str(), csv.header), (b',', "", Header::Names));
        assert_eq!((csv.quote, csv.escape), (b'"', b'"'));
        let csv = options("copy t from stdin (format csv, quote '''', header match, force_null (a))").unwrap();
        assert_eq!((csv.quote, csv.escape, csv.header), (b'\'', b'\'', Header::Match));
        assert_eq!(csv.force_null, ColumnSet::Named(vec!["a".to_owned()]));
        assert_eq!(
            options("copy t from stdin (freeze on, header off, encoding 'UTF-8')").unwrap().header,
            Header::None
        );
        assert_eq!(options("copy t to stdout csv force quote *").unwrap().force_quote, ColumnSet::All);
    }

    /// As PostgreSQL 15 says it.
    #[test]
    fn wrong_options_are_refused() {
        for (text, error) in [
            ("copy t from stdin (format xml)", "22023 COPY format \"xml\" not recognized @20"),
            ("copy t from stdin (foo 1)", "42601 option \"foo\" not recognized @20"),
            ("copy t from stdin (format csv, format csv)", "42601 conflicting or redundant options @32"),
            ("copy t from stdin (format binary, delimiter ',')", "42601 cannot specify DELIMITER in BINARY mode"),
            ("copy t from stdin (format binary, null '')", "42601 cannot specify NULL in BINARY mode"),
            ("copy t from stdin (format binary, header)", "0A000 cannot specify HEADER in BINARY mode"),
            ("copy t from stdin (delimiter 'ab')", "0A000 COPY delimiter must be a single one-byte character"),
            ("copy t from stdin (delimiter E'\\n')", "22023 COPY delimiter cannot be newline or carriage return"),
            (
                "copy t from stdin (null E'a\\n')",
                "22023 COPY null representation cannot use newline or carriage return",
            ),
            ("copy t from stdin (delimiter 'a')", "22023 COPY delimiter cannot be \"a\""),
            ("copy t from stdin (quote '\"')", "0A000 COPY quote available only in CSV mode"),
            ("copy t from stdin (escape '\"')", "0A000 COPY escape available only in CSV mode"),
            ("copy t from stdin (format csv, quote 'ab')", "0A000 COPY quote must be a single one-byte character"),
            ("copy t from stdin (format csv, escape 'ab')", "0A000 COPY escape must be a single one-byte character"),
            ("copy t from stdin (format csv, quote ',')", "22023 COPY delimiter and quote must be different"),
            ("copy t to stdout (force_quote *)", "0A000 COPY force quote available only in CSV mode"),
            ("copy t from stdin (format csv, force_quote *)", "0A000 COPY force quote only available using COPY TO"),
            (
                "copy t to stdout (format csv, force_not_null (a))",
                "0A000 COPY force not null only available using COPY FROM",
            ),
            ("copy t from stdin (force_not_null (a))", "0A000 COPY force not null available only in CSV mode"),
            ("copy t to stdout (format csv, force_null (a))", "0A000 COPY force null only available using COPY FROM"),
            ("copy t from stdin (force_null (a))", "0A000 COPY force null available only in CSV mode"),
            (
                "copy t from stdin (delimiter ',', null 'a,')",
                "0A000 COPY delimiter must not appear in the NULL specification",
            ),
            (
                "copy t from stdin (format csv, null '\"')",
                "0A000 CSV quote character must not appear in the NULL specification",
            ),
            ("copy t from stdin (header bad)", "42601 header requires a Boolean value or \"match\""),
            ("copy t to stdout (header match)", "0A000 cannot use \"match\" with HEADER in COPY TO"),
            ("copy t from stdin (freeze bad)", "42601 freeze requires a Boolean value"),
            (
                "copy t from stdin (encoding 'bad')",
                "22023 argument to option \"encoding\" must be a valid encoding name @20",
            ),
            (
                "copy t from stdin (format csv, force_null a)",
                "22023 argument to option \"force_null\" must be a list of column names @32",
            ),
            (
                "copy t from stdin (force_not_null *)",
                "22023 argument to option \"force_not_null\" must be a list of column names @20",
            ),
            ("copy t from stdin (format csv, null)", "42601 null requires a parameter"),
            ("copy t from stdin (header 2)", "42601 header requires a Boolean value or \"match\""),
            ("copy t from stdin (encoding 'latin1')", "0A000 COPY in encoding latin1 is not supported"),
            ("copy t from '/tmp/x'", "0A000 COPY from a file of the server is not supported"),
            ("copy t to program 'cat'", "0A000 COPY to an external program is not supported"),
        ] {
            assert_eq!(options(text).err().as_deref(), Some(error), "{text}");
        }
    }
}
