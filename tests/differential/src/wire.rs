//! A client of the PostgreSQL protocol that blocks, and shows all that a server answers: types, modifiers, tags, fields
//! of errors. Drivers hide part of it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{DataRowBody, ErrorResponseBody, Message};
use postgres_protocol::message::frontend;

use crate::compare::NOT_SUPPORTED;
use crate::tree::Parameter;

/// How long an answer may take. Servers end a statement earlier, by their `statement_timeout`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Parts of messages with which PostgreSQL refuses a value with 0A000.
const UNSUPPORTED_VALUES: &[&str] = &[
    "\" not supported for type ",
    "multidimensional arrays is not supported",
    "timestamps cannot be binned into intervals containing months or years",
];

/// How a statement is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// By Query, with results in text.
    Simple,
    /// By Parse, Describe, Bind and Execute, with results in text.
    Extended,
    /// The same with results in binary.
    Binary,
}

/// A column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The OID of its type.
    pub type_oid: u32,
    /// The modifier of its type, -1 for none.
    pub modifier: i32,
}

/// An error of a server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerError {
    /// The SQLSTATE.
    pub code: String,
    /// The message.
    pub message: String,
    /// The position in the statement in characters from 1, empty for none.
    pub position: String,
    /// The severity, not translated.
    pub severity: String,
}

impl ServerError {
    /// Whether a value is wrong, so that it depends on the rows that are evaluated. Some of these errors are 0A000, in
    /// PostgreSQL too.
    pub fn is_of_value(&self) -> bool {
        let is_value = UNSUPPORTED_VALUES.iter().any(|part| self.message.contains(part));
        self.code.starts_with("22") || self.code == NOT_SUPPORTED && is_value
    }
}

/// A row: the bytes of its values.
pub type Row = Vec<Option<Vec<u8>>>;

/// What a server answered to one statement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The types of the parameters, if it was described.
    pub parameters: Vec<u32>,
    /// The columns of the rows.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The tags of the commands that completed.
    pub tags: Vec<String>,
    /// The first error.
    pub error: Option<ServerError>,
    /// Whether the connection broke, or no answer came in time.
    pub is_lost: bool,
}

/// A connection.
pub struct Client {
    address: String,
    database: String,
    stream: TcpStream,
    input: BytesMut,
    setup: Vec<String>,
}

impl Client {
    /// Connects as `postgres`, without a password.
    pub fn connect(address: &str, database: &str) -> io::Result<Client> {
        let (stream, input) = (TcpStream::connect(address)?, BytesMut::new());
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_nodelay(true)?;
        let (address, database) = (address.to_string(), database.to_string());
        let mut client = Client { address, database, stream, input, setup: Vec::new() };
        client.start()?;
        Ok(client)
    }

    fn start(&mut self) -> io::Result<()> {
        let mut out = BytesMut::new();
        let options = [("user", "postgres"), ("database", &*self.database), ("client_encoding", "UTF8")];
        frontend::startup_message(options, &mut out)?;
        self.stream.write_all(&out)?;
        let answer = self.read_answer()?;
        answer.error.map_or(Ok(()), |error| Err(io::Error::other(format!("{}: {}", self.address, error.message))))
    }

    /// Runs a statement now, and after each new connection.
    pub fn set_up(&mut self, sql: &str) -> io::Result<()> {
        let answer = self.simple(sql)?;
        if let Some(error) = answer.error {
            return Err(io::Error::other(format!("{}: {sql}: {}", self.address, error.message)));
        }
        self.setup.push(sql.to_string());
        Ok(())
    }

    /// Runs statements with Query.
    pub fn simple(&mut self, sql: &str) -> io::Result<Answer> {
        let mut out = BytesMut::new();
        frontend::query(sql, &mut out)?;
        self.stream.write_all(&out)?;
        self.read_answer()
    }

    /// Runs a statement. A broken connection is opened again.
    pub fn run(&mut self, sql: &str, parameters: &[Parameter], mode: Mode) -> io::Result<Answer> {
        let answer = match mode {
            Mode::Simple => self.simple(sql),
            Mode::Extended => self.extended(sql, parameters, 0),
            Mode::Binary => self.extended(sql, parameters, 1),
        };
        answer.or_else(|_| {
            self.reconnect()?;
            Ok(Answer { is_lost: true, ..Answer::default() })
        })
    }

    fn extended(&mut self, sql: &str, parameters: &[Parameter], format: i16) -> io::Result<Answer> {
        let mut out = BytesMut::new();
        frontend::parse("", sql, parameters.iter().map(|parameter| parameter.declared), &mut out)?;
        frontend::describe(b'S', "", &mut out)?;
        let value = |parameter: &Parameter, out: &mut BytesMut| {
            Ok(parameter.value.as_ref().map_or(IsNull::Yes, |value| {
                out.extend_from_slice(value.as_bytes());
                IsNull::No
            }))
        };
        frontend::bind("", "", [], parameters, value, [format], &mut out).map_err(|_| io::Error::other("bind"))?;
        frontend::execute("", 0, &mut out)?;
        frontend::sync(&mut out);
        self.stream.write_all(&out)?;
        self.read_answer()
    }

    /// Opens the connection again. Waits for a server that starts again.
    fn reconnect(&mut self) -> io::Result<()> {
        self.stream = TcpStream::connect(&self.address)?;
        self.stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        self.input.clear();
        self.start()?;
        for sql in self.setup.clone() {
            self.simple(&sql)?;
        }
        Ok(())
    }

    /// Reads to ReadyForQuery.
    fn read_answer(&mut self) -> io::Result<Answer> {
        let mut answer = Answer::default();
        loop {
            match self.read_message()? {
                Message::ReadyForQuery(_) => return Ok(answer),
                Message::ParameterDescription(body) => answer.parameters = body.parameters().collect()?,
                Message::RowDescription(body) => {
                    let column = |field: postgres_protocol::message::backend::Field<'_>| {
                        let (type_oid, modifier) = (field.type_oid(), field.type_modifier());
                        Ok(Column { name: field.name().to_string(), type_oid, modifier })
                    };
                    answer.columns = body.fields().map(column).collect()?;
                }
                Message::DataRow(body) => answer.rows.push(row(&body)?),
                Message::CommandComplete(body) => answer.tags.push(body.tag()?.to_string()),
                Message::EmptyQueryResponse => answer.tags.push("(empty)".to_string()),
                Message::ErrorResponse(body) if answer.error.is_none() => {
                    let error = error(&body)?;
                    let is_fatal = error.severity == "FATAL";
                    answer.error = Some(error);
                    if is_fatal {
                        return Ok(answer);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_message(&mut self) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.input)? {
                return Ok(message);
            }
            let mut chunk = [0; 65_536];
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.input.extend_from_slice(&chunk[..read]),
            }
        }
    }
}

fn row(body: &DataRowBody) -> io::Result<Row> {
    let buffer = body.buffer();
    body.ranges().map(|range| Ok(range.map(|range| buffer[range].to_vec()))).collect()
}

fn error(body: &ErrorResponseBody) -> io::Result<ServerError> {
    let mut error = ServerError::default();
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => error.code = value,
            b'M' => error.message = value,
            b'P' => error.position = value,
            b'V' => error.severity = value,
            _ => {}
        }
    }
    Ok(error)
}
