//! The cases, and how one runs on a system: step by step, with what each step answered, which sessions wait, and which
//! step woke them.
//!
//! A transcript is the steps of a case, each followed by its outcome:
//!
//! ```text
//! a: update test set value = 11 where id = 1
//!    UPDATE 1
//! b: update test set value = 12 where id = 1
//!    waits
//! a: commit
//!    COMMIT
//!    b: UPDATE 1
//! ```

use std::time::{Duration, Instant};

use super::session::{Block, Session};
use super::system::System;
use crate::process::WAIT_TIMEOUT;

/// The rows of the table at the beginning of a case, unless it says otherwise.
const ROWS: &str = "(1, 10), (2, 20)";
/// The sessions.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// How long a session that is to be woken may be seen waiting.
const PATIENCE: Duration = Duration::from_secs(15);
/// A session waits if it is seen waiting twice, with so much time between.
const CONFIRMED_AFTER: Duration = Duration::from_millis(150);

/// The outcome of a step whose session has not answered to the step before.
const STUCK: &str = "still waits";

/// A case: a title, the rows of its table, and its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub title: String,
    /// The only level at which it runs, if it is not for all.
    pub level: Option<String>,
    rows: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    session: usize,
    sql: String,
    /// It closes a cycle or times out: it waits, but the case goes on when it has ended.
    ends: bool,
}

/// The steps of a case that has run, each with the lines of its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    pub title: String,
    steps: Vec<(String, Vec<String>)>,
}

/// The paragraphs of a file, each begun by a line with `# ` and its title.
fn paragraphs(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some(title) => found.push((title.to_string(), Vec::new())),
            None => found.last_mut().expect("a title").1.push(line),
        }
    }
    found
}

pub fn parse_cases(text: &str) -> Vec<Case> {
    let parse = |(title, lines): (String, Vec<&str>)| {
        let mut case = Case { title, level: None, rows: ROWS.to_string(), steps: Vec::new() };
        for line in lines {
            if let Some(rows) = line.strip_prefix("rows ") {
                case.rows = rows.to_string();
            } else if let Some(level) = line.strip_prefix("level ") {
                case.level = Some(level.to_string());
            } else {
                let (name, sql) = line.split_once(':').expect("a session and a statement");
                let session = NAMES.iter().position(|known| *known == name).expect("a session");
                let (ends, sql) = sql.strip_prefix('!').map_or((false, sql), |sql| (true, sql));
                case.steps.push(Step { session, sql: sql.trim().to_string(), ends });
            }
        }
        case
    };
    paragraphs(text).into_iter().map(parse).collect()
}

impl Step {
    fn to_text(&self) -> String {
        let mark = if self.ends { "!" } else { "" };
        format!("{}:{mark} {}", NAMES[self.session], self.sql)
    }
}

impl Transcript {
    pub fn parse_all(text: &str) -> Vec<Transcript> {
        let parse = |(title, lines): (String, Vec<&str>)| {
            let mut steps: Vec<(String, Vec<String>)> = Vec::new();
            for line in lines {
                match line.strip_prefix("   ") {
                    Some(outcome) => steps.last_mut().expect("a step").1.push(outcome.to_string()),
                    None => steps.push((line.to_string(), Vec::new())),
                }
            }
            Transcript { title, steps }
        };
        paragraphs(text).into_iter().map(parse).collect()
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("# {}\n", self.title);
        for (step, outcome) in &self.steps {
            text.push_str(&format!("{step}\n"));
            outcome.iter().for_each(|line| text.push_str(&format!("   {line}\n")));
        }
        text
    }

    /// Whether a session answers at this step.
    fn answers(&self, step: usize, session: usize, runs_the_step: bool) -> bool {
        let Some((_, outcome)) = self.steps.get(step) else { return false };
        match runs_the_step {
            true => outcome.first().is_none_or(|line| line != "waits"),
            false => outcome.iter().any(|line| line.starts_with(&format!("{}: ", NAMES[session]))),
        }
    }
}

/// The sessions of a system, in the middle of a case.
pub struct Runner<'a> {
    system: &'a mut dyn System,
    level: String,
    sessions: Vec<Session>,
    /// A session that makes the rows of each case.
    main: Session,
}

impl<'a> Runner<'a> {
    /// Opens sessions at this level, and makes the table.
    pub fn new(system: &'a mut dyn System, level: &str) -> Runner<'a> {
        let mut main = system.open(0);
        main.run("create table test (id int primary key, value int)");
        let mut runner = Runner { system, level: level.to_string(), sessions: Vec::new(), main };
        runner.reopen();
        runner
    }

    /// Closes the sessions, and opens them again.
    fn reopen(&mut self) {
        self.sessions.clear();
        for number in 0..NAMES.len() {
            let mut session = self.system.open(number);
            session.run(&format!("set session characteristics as transaction isolation level {}", self.level));
            self.sessions.push(session);
        }
    }

    /// Runs a case. `expected`: the transcript that it should have, which says how long to look for an answer.
    pub fn run(&mut self, case: &Case, expected: Option<&Transcript>) -> Transcript {
        assert_eq!(self.main.run("delete from test").len(), 1, "no error");
        assert_eq!(self.main.run(&format!("insert into test values {}", case.rows)).len(), 1);
        let mut transcript = Transcript { title: case.title.clone(), steps: Vec::new() };
        for (number, step) in case.steps.iter().enumerate() {
            if self.sessions[step.session].is_running() {
                // Another one was woken instead: the case ends here.
                transcript.steps.push((step.to_text(), vec![STUCK.to_string()]));
                self.reopen();
                return transcript;
            }
            let outcome = self.step(&case.title, number, step, expected);
            transcript.steps.push((step.to_text(), outcome));
        }
        for session in &mut self.sessions {
            assert!(!session.is_running(), "{}: a session waits at the end", case.title);
            if session.block != Block::None {
                session.run("rollback");
            }
        }
        transcript
    }

    fn step(&mut self, title: &str, number: usize, step: &Step, expected: Option<&Transcript>) -> Vec<String> {
        let (system, name) = (self.system.name(), NAMES[step.session]);
        let what = format!("{system}, {title}, step {}: {name}: {}", number + 1, step.sql);
        if step.ends {
            let deadline = Instant::now() + WAIT_TIMEOUT;
            while !self.system.have_waited_long(&self.sessions) {
                assert!(Instant::now() < deadline, "{what}: the others do not wait");
            }
        }
        self.sessions[step.session].send(&step.sql);
        let answers = |session: usize| {
            let own = session == step.session;
            (own && step.ends) || expected.is_some_and(|expected| expected.answers(number, session, own))
        };
        let mut outcome = match self.look(&what, step.session, answers(step.session)) {
            Some(lines) => lines,
            None => vec!["waits".to_string()],
        };
        // A session that was woken may have woken others.
        let mut woken: Vec<Option<Vec<String>>> = vec![None; NAMES.len()];
        loop {
            let mut has_woken = false;
            for (session, woken) in woken.iter_mut().enumerate() {
                if session != step.session && self.sessions[session].is_running() {
                    *woken = self.look(&what, session, answers(session));
                    has_woken |= woken.is_some();
                }
            }
            if !has_woken {
                break;
            }
        }
        for (session, lines) in woken.into_iter().enumerate() {
            outcome.extend(lines.into_iter().flatten().map(|line| format!("{}: {line}", NAMES[session])));
        }
        outcome
    }

    /// The answer of a session, or `None` if it waits for another one.
    fn look(&mut self, what: &str, session: usize, answers: bool) -> Option<Vec<String>> {
        let start = Instant::now();
        let mut first_seen = None;
        loop {
            if let Some(lines) = self.sessions[session].answer() {
                return Some(lines);
            }
            let waits = self.system.waiting(&self.sessions).contains(&self.sessions[session].pid);
            let since = if waits { *first_seen.get_or_insert_with(Instant::now) } else { Instant::now() };
            if !waits {
                first_seen = None;
            }
            let is_confirmed = since.elapsed() >= CONFIRMED_AFTER && (!answers || start.elapsed() > PATIENCE);
            // It may have answered since it was looked at.
            if is_confirmed {
                return self.sessions[session].answer();
            }
            assert!(start.elapsed() < WAIT_TIMEOUT, "{what}: {} neither answers nor waits", NAMES[session]);
        }
    }
}

#[test]
fn transcripts_are_read_as_they_are_written() {
    let text = "# A wait\na: begin\n   BEGIN\nb:! select 1\n   waits\na: commit\n   COMMIT\n   b: SELECT 1\n";
    let transcripts = Transcript::parse_all(text);
    assert_eq!(transcripts[0].to_text(), text);
    assert_eq!([0, 1, 2].map(|step| transcripts[0].answers(step, 1, step == 1)), [false, false, true]);
    let cases = parse_cases("# A wait\nrows (1, 1)\na: begin\nb:! select 1\n");
    assert_eq!((cases[0].rows.as_str(), cases[0].steps[1].session, cases[0].steps[1].ends), ("(1, 1)", 1, true));
}
