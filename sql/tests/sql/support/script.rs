//! The runner of the golden SQL scripts.
//!
//! A script is a sequence of blocks separated by blank lines. A block holds `#` comments, then statements (each on its
//! own lines, ending in `;`) and commands, then `----` and the expected output. `UPDATE_GOLDENFILES=1` rewrites the
//! output instead of comparing it.
//!
//! Statements go to a server over the wire, one Query message each. Commands:
//!
//! - `\session NAME`: sends what follows on another connection
//! - `\advance MS`: advances the oracle's time
//! - `\zone NAME`: sets the session's time zone
//! - `\waits`: the next statement waits for the lock of a row; nothing is printed
//! - `\answer`: what the session's waiting statement answers, once it does
//! - `\params VALUE...`: sends the next statement through the extended protocol with these parameters, and fetches its
//!   rows in several parts; `\N` is NULL, `\_` a blank

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use kv::memory::MemoryCluster;

use super::client::{Raw, Reply, bind, execute, named, parse, query, sync};
use super::{TestServer, eventually, gateway_config};

/// `now()` in scripts: 2024-05-05 07:08:09.500678 UTC.
const NOW: i64 = 768_208_089_500_678;
const USER: &str = "ann";
const DATABASE: &str = "postgres";

/// Rows of the first two Executes of a statement with parameters. Few, so that portals suspend.
const FETCH_ROWS: i32 = 3;

/// A server and named sessions of it.
struct Script {
    server: TestServer,
    sessions: BTreeMap<String, Raw>,
    current: String,
    params: Option<Vec<Option<String>>>,
    /// Whether the next statement waits for the lock of a row.
    waits: bool,
}

impl Script {
    async fn new() -> Script {
        let server = TestServer::with_clock(gateway_config(), MemoryCluster::new(), || NOW).await;
        Script { server, sessions: BTreeMap::new(), current: "main".to_owned(), params: None, waits: false }
    }

    async fn session(&mut self) -> &mut Raw {
        if !self.sessions.contains_key(&self.current) {
            let raw = Raw::login_as(self.server.address, USER, DATABASE).await;
            self.sessions.insert(self.current.clone(), raw);
        }
        self.sessions.get_mut(&self.current).expect("just connected")
    }

    /// Runs the lines of a block and returns their output.
    async fn block(&mut self, lines: &[&str]) -> String {
        let mut out = String::new();
        let mut text = String::new();
        for line in lines {
            if text.is_empty() && line.starts_with('\\') {
                out.push_str(&self.command(line).await);
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
            if line.trim_end().ends_with(';') {
                out.push_str(&self.statement(&std::mem::take(&mut text)).await);
            }
        }
        if !text.is_empty() {
            out.push_str(&self.statement(&text).await);
        }
        out
    }

    async fn command(&mut self, line: &str) -> String {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("\\params") => {
                self.params = Some(words.map(|word| (word != "\\N").then(|| word.replace("\\_", " "))).collect());
            }
            Some("\\zone") => {
                let zone = words.next().expect("a zone");
                let replies = self.simple(&format!("set time zone '{zone}'")).await;
                assert!(replies.iter().all(|reply| reply.kind != b'E'), "{line}");
            }
            Some("\\advance") => {
                let ms = words.next().and_then(|ms| ms.parse().ok()).expect("milliseconds");
                self.server.cluster.tso().advance_ms(ms);
            }
            Some("\\waits") => self.waits = true,
            Some("\\answer") => return render(&self.session().await.until_ready().await),
            Some("\\session") => self.current = words.next().expect("a name").to_owned(),
            other => panic!("unknown command {other:?}"),
        }
        String::new()
    }

    /// Sends a statement, and returns once it waits for the lock of a row.
    async fn send_to_wait(&mut self, text: &str) {
        let waiting = |script: &Script| script.server.cluster.row_locks().iter().filter(|l| l.wait.is_some()).count();
        let before = waiting(self);
        self.session().await.send(&query(text)).await;
        eventually("the statement waits", || waiting(self) > before).await;
    }

    async fn statement(&mut self, text: &str) -> String {
        if std::mem::take(&mut self.waits) {
            self.send_to_wait(text).await;
            return String::new();
        }
        match self.params.take() {
            None => render(&self.simple(text).await),
            Some(params) => render(&self.extended(text, &params).await),
        }
    }

    async fn simple(&mut self, text: &str) -> Vec<Reply> {
        let raw = self.session().await;
        raw.send(&query(text)).await;
        raw.until_ready().await
    }

    async fn extended(&mut self, text: &str, params: &[Option<String>]) -> Vec<Reply> {
        let values: Vec<Option<&[u8]>> = params.iter().map(|value| value.as_deref().map(str::as_bytes)).collect();
        let raw = self.session().await;
        raw.send(&[parse("", text, &[]), named(b'D', b'S', ""), sync()].concat()).await;
        let mut replies = raw.until_ready().await;
        let has_rows = replies.iter().any(|reply| reply.kind == b'T');
        if replies.iter().any(|reply| reply.kind == b'E') {
            return replies;
        }
        raw.send(&bind("", "", &[], &values, &[])).await;
        if has_rows {
            raw.send(&[execute("", FETCH_ROWS), execute("", FETCH_ROWS)].concat()).await;
        }
        raw.send(&[execute("", 0), sync()].concat()).await;
        let fetched = raw.until_ready().await;
        // A portal at its end answers a further Execute with its tag again.
        let end = fetched.iter().position(|reply| matches!(reply.kind, b'C' | b'E')).map_or(fetched.len(), |at| at + 1);
        let rest = &fetched[end..];
        assert!(rest.iter().all(|reply| matches!(reply.kind, b'C' | b'Z')), "{rest:?}");
        replies.extend_from_slice(&fetched[..end]);
        replies
    }
}

/// The replies to one message or pipeline as a script shows them. Like psql, shows no rows of a failed statement.
fn render(replies: &[Reply]) -> String {
    let mut out = String::new();
    let mut statement = String::new();
    let mut columns: Option<Vec<(String, u32)>> = None;
    for reply in replies {
        match reply.kind {
            b't' => {
                let types: Vec<&str> = reply.parameter_types().into_iter().map(type_name).collect();
                let _ = writeln!(statement, "params {}", types.join(" "));
            }
            b'T' => {
                let described = reply.columns();
                if described.is_empty() {
                    statement.push_str("(no columns)\n");
                } else if !is_explain(&described) {
                    let heads = described.iter().map(|(name, oid)| format!("{name}:{}", type_name(*oid)));
                    let _ = writeln!(statement, "{}", heads.collect::<Vec<_>>().join("|"));
                }
                columns = Some(described);
            }
            b'D' => {
                let values = reply.values();
                assert_eq!(Some(values.len()), columns.as_ref().map(Vec::len), "a value for every column");
                let shown = values.into_iter().map(|value| match value {
                    Some(bytes) => String::from_utf8(bytes.to_vec()).expect("text output is UTF-8"),
                    None => "NULL".to_owned(),
                });
                let shown = shown.collect::<Vec<_>>();
                let line = if shown.is_empty() { "()".to_owned() } else { masked(&shown.join("|")) };
                let _ = writeln!(statement, "{line}");
            }
            b'C' => {
                let tag = reply.command_tag();
                let explain = columns.take().is_some_and(|columns| is_explain(&columns));
                if !tag.starts_with("SELECT") && !explain {
                    let _ = writeln!(statement, "{tag}");
                }
                out.push_str(&std::mem::take(&mut statement));
            }
            b'E' => {
                statement.clear();
                columns = None;
                out.push_str(&show_fields(reply));
            }
            b'N' => out.push_str(&show_fields(reply)),
            _ => {}
        }
    }
    out
}

/// A line without the timestamps and times of this run.
fn masked(line: &str) -> String {
    for name in ["Planning Time", "Execution Time"] {
        if line.starts_with(&format!("{name}: ")) {
            return format!("{name}: ... ms");
        }
    }
    let words = line.split(' ').map(|word| match word.split_once('=') {
        Some((name @ ("start_ts" | "safe_ts" | "time" | "(time"), _)) => format!("{name}=..."),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_explain(columns: &[(String, u32)]) -> bool {
    matches!(columns, [(name, _)] if name == "QUERY PLAN")
}

fn type_name(oid: u32) -> &'static str {
    // No parameter can have this type.
    if oid == pgtypes::SqlType::VOID.oid.0 {
        return "void";
    }
    // A user's type is shown as its kind.
    pgtypes::SqlType::new(pgtypes::Oid(oid)).row().name
}

/// An ErrorResponse or NoticeResponse.
fn show_fields(reply: &Reply) -> String {
    let field = |code| reply.field(code).unwrap_or_default();
    let mut out = format!("{} {}: {}", field(b'S'), field(b'C'), field(b'M'));
    if let Some(position) = reply.field(b'P') {
        let _ = write!(out, " [at {position}]");
    }
    for (name, code) in [("DETAIL", b'D'), ("HINT", b'H')] {
        if let Some(line) = reply.field(code) {
            let _ = write!(out, "\n{name}: {line}");
        }
    }
    out.push('\n');
    out
}

/// Runs a script and compares its output, or rewrites it.
pub(crate) async fn run(path: &Path) {
    let input = std::fs::read_to_string(path).expect("the script can be read");
    let mut script = Script::new().await;
    let mut output = String::new();
    for block in input.split("\n\n") {
        let block = block.trim_matches('\n');
        if block.is_empty() {
            continue;
        }
        if !output.is_empty() {
            output.push('\n');
        }
        let head = block.lines().take_while(|line| *line != "----");
        let (comments, code): (Vec<&str>, Vec<&str>) = head.partition(|line| line.starts_with('#'));
        for line in comments.iter().chain(&code) {
            let _ = writeln!(output, "{line}");
        }
        if !code.is_empty() {
            let result = script.block(&code).await;
            // A blank line in the output would end the block.
            let _ = write!(output, "----\n{}", result.replace("\n\n", "\n~\n"));
        }
    }
    if std::env::var("UPDATE_GOLDENFILES").is_ok_and(|value| value == "1") {
        std::fs::write(path, output).expect("the script can be written");
        return;
    }
    for (at, (expected, actual)) in input.lines().zip(output.lines()).enumerate() {
        assert_eq!(actual, expected, "{}:{}: the output differs", path.display(), at + 1);
    }
    assert_eq!(output.lines().count(), input.lines().count(), "{}: lines are missing or too many", path.display());
}
