//! Golden scripts of the two sides of a link, without sockets. Each command prints what the side decides. `at` is the
//! time in milliseconds; it stays until a command sets it again.

use std::error::Error;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use goldenscript::{ArgumentConsumer, Command, Context};
use link::callee::{Action, Callee};
use link::caller::{Caller, Submission};
use link::frame::FrameReader;
use link::message::{Message, RequestId};
use link::{CallError, CalleeOptions, CallerOptions, Kind, Outcome, Reason, Refused};

type Output = Result<String, Box<dyn Error>>;

fn number(args: &mut ArgumentConsumer<'_>, key: &str) -> Result<Option<u64>, Box<dyn Error>> {
    Ok(args.take_key(key).map(str::parse::<u64>).transpose()?)
}

fn next_id(args: &mut ArgumentConsumer<'_>) -> Result<RequestId, Box<dyn Error>> {
    Ok(RequestId::new(args.next_pos().ok_or("which request?")?.parse()?))
}

fn payload(bytes: u64) -> Bytes {
    vec![0; bytes as usize].into()
}

fn describe(message: &Message) -> String {
    match message {
        Message::Request { id, timeout_ms, payload, .. } => {
            format!("request {id} ({} bytes, {timeout_ms} ms)", payload.len())
        }
        Message::Answer { id, payload } => format!("answer {id} ({} bytes)", payload.len()),
        Message::Refusal { id, refused } => format!("refusal {id} ({:?}: {})", refused.reason, refused.why),
        Message::Cancel(id) => format!("cancel {id}"),
        Message::Ping => "ping".to_owned(),
        Message::Pong => "pong".to_owned(),
        Message::GoAway => "go away".to_owned(),
    }
}

/// The whole messages that end in what was appended to `wire`.
fn frame_text(reader: &mut FrameReader, frame: &[u8]) -> String {
    if frame.is_empty() {
        return "nothing to send".to_owned();
    }
    reader.buffer().extend_from_slice(frame);
    let mut messages = Vec::new();
    while let Some(message) = reader.next_message().unwrap() {
        messages.push(describe(&message));
    }
    let messages = if messages.is_empty() { "a part".to_owned() } else { messages.join(", ") };
    format!("{} bytes: {messages}", frame.len())
}

fn ended(ended: Vec<(String, CallError)>) -> String {
    let text = |(name, error): (String, CallError)| outcome(&name, &Err(error));
    if ended.is_empty() {
        "nobody waits".to_owned()
    } else {
        ended.into_iter().map(text).collect::<Vec<_>>().join("\n")
    }
}

fn outcome(name: &str, outcome: &Outcome) -> String {
    match outcome {
        Ok(payload) => format!("{name}: {} bytes", payload.len()),
        Err(CallError::Lost(why)) => format!("{name}: lost: {why}"),
        Err(CallError::Unreachable(why)) => format!("{name}: unreachable: {why}"),
        Err(CallError::Busy(why)) => format!("{name}: busy: {why}"),
        Err(CallError::Invalid(why)) => format!("{name}: invalid: {why}"),
    }
}

struct CallerRunner {
    caller: Caller<String>,
    now: Duration,
    reader: FrameReader,
    framed: u64,
}

impl CallerRunner {
    fn submit(&mut self, args: &mut ArgumentConsumer<'_>) -> Output {
        let name = args.next_pos().ok_or("whose request?")?.to_owned();
        let timeout = Duration::from_millis(number(args, "timeout")?.unwrap_or(4_000));
        let payload = payload(number(args, "bytes")?.unwrap_or(10));
        let request = Submission { kind: Kind::new(1), payload, timeout };
        Ok(match self.caller.submit(self.now, request, name.clone()) {
            Ok(accepted) => {
                let flags = [(accepted.connect, "connect"), (accepted.alone, "alone"), (accepted.sooner, "sooner")];
                let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| format!(", {flag}"));
                format!("request {}{}", accepted.id, flags.collect::<String>())
            }
            Err(error) => outcome(&name, &Err(error)),
        })
    }

    fn receive(&mut self, message: Message) -> String {
        match self.caller.received(message) {
            Ok(Some((name, result))) => outcome(&name, &result),
            Ok(None) => "nothing".to_owned(),
            Err(why) => format!("breach: {why}"),
        }
    }
}

impl goldenscript::Runner for CallerRunner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Output {
        let mut args = command.consume_args();
        if let Some(at) = number(&mut args, "at")? {
            self.now = Duration::from_millis(at);
        }
        let written = number(&mut args, "written")?;
        let output = match command.name.as_str() {
            "submit" => self.submit(&mut args)?,
            "cancel" => {
                let name = self.caller.cancel(next_id(&mut args)?);
                name.map_or("unknown".to_owned(), |name| format!("{name} went away"))
            }
            "connected" => {
                self.caller.connected(self.now);
                (self.framed, self.reader) = (0, FrameReader::default());
                "up".to_owned()
            }
            "failed" => ended(self.caller.connect_failed(self.now, "refused")),
            "broken" => ended(self.caller.broken(self.now, written.unwrap_or(self.framed), "reset")),
            "close" => ended(self.caller.close(written.unwrap_or(self.framed))),
            "frame" => {
                let mut out = BytesMut::new();
                self.caller.next_frame(&mut out);
                self.framed += out.len() as u64;
                format!("{} (up to {})", frame_text(&mut self.reader, &out), self.framed)
            }
            "answer" => {
                let (id, bytes) = (next_id(&mut args)?, number(&mut args, "bytes")?);
                self.receive(Message::Answer { id, payload: payload(bytes.unwrap_or(5)) })
            }
            "refuse" => {
                let reason = match args.next_pos().ok_or("why?")? {
                    "busy" => Reason::Busy,
                    "stopping" => Reason::Stopping,
                    "unknown" => Reason::UnknownKind,
                    _ => Reason::Malformed,
                };
                let refused = Refused { reason, why: "so".to_owned() };
                self.receive(Message::Refusal { id: next_id(&mut args)?, refused })
            }
            "go_away" => self.receive(Message::GoAway),
            "pong" => self.receive(Message::Pong),
            "ping" => self.receive(Message::Ping),
            "next_timer" => self.caller.next_timer().map_or("none".to_owned(), |at| format!("{} ms", at.as_millis())),
            "timer" => {
                let tick = self.caller.timer(self.now);
                format!("{}{}", ended(tick.expired), if tick.dead { "\nthe other side is dead" } else { "" })
            }
            name => return Err(format!("unknown command {name}").into()),
        };
        args.reject_next()?;
        Ok(output)
    }
}

struct CalleeRunner {
    callee: Callee<String>,
    now: Duration,
    reader: FrameReader,
}

impl CalleeRunner {
    fn receive(&mut self, message: Message) -> String {
        match self.callee.received(self.now, message) {
            Ok(Action::None) => "nothing".to_owned(),
            Ok(Action::Start { id, .. }) => format!("start {id}"),
            Ok(Action::Drop(handle)) => format!("drop {handle}"),
            Err(why) => format!("breach: {why}"),
        }
    }
}

impl goldenscript::Runner for CalleeRunner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Output {
        let mut args = command.consume_args();
        if let Some(at) = number(&mut args, "at")? {
            self.now = Duration::from_millis(at);
        }
        let bytes = number(&mut args, "bytes")?.unwrap_or(10);
        let output = match command.name.as_str() {
            "request" => {
                let timeout_ms = number(&mut args, "timeout")?.unwrap_or(4_000) as u32;
                let (id, kind) = (next_id(&mut args)?, Kind::new(1));
                self.receive(Message::Request { id, kind, timeout_ms, payload: payload(bytes) })
            }
            "cancel" => {
                let id = next_id(&mut args)?;
                self.receive(Message::Cancel(id))
            }
            "ping" => self.receive(Message::Ping),
            "answer" => {
                let id = next_id(&mut args)?;
                self.receive(Message::Answer { id, payload: payload(bytes) })
            }
            "later" => {
                let id = next_id(&mut args)?;
                let ended = self.callee.started(id, format!("task {id}"));
                ended.map_or("in flight".to_owned(), |handle| format!("drop {handle}"))
            }
            "done" => {
                self.callee.answered(next_id(&mut args)?, Ok(payload(bytes)));
                format!("{} in flight", self.callee.in_flight())
            }
            "frame" => {
                let mut out = BytesMut::new();
                self.callee.next_frame(&mut out);
                frame_text(&mut self.reader, &out)
            }
            "stop" => {
                self.callee.stop();
                "stopping".to_owned()
            }
            "end" => format!("drop {:?}", self.callee.end()),
            "state" => {
                let Self { callee, .. } = self;
                let flags = [
                    (callee.takes_input(), "takes input"),
                    (callee.is_overrun(), "overrun"),
                    (callee.is_drained(), "drained"),
                    (callee.has_output(), "has output"),
                ];
                let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| format!(", {flag}"));
                format!("{} in flight{}", callee.in_flight(), flags.collect::<String>())
            }
            "timer" => {
                let unread = args.take_key("unread").is_some();
                let tick = self.callee.timer(self.now, unread);
                let dead = if tick.dead { ", the other side is dead" } else { "" };
                format!("drop {:?}{dead}; next at {} ms", tick.expired, self.callee.next_timer().as_millis())
            }
            name => return Err(format!("unknown command {name}").into()),
        };
        args.reject_next()?;
        Ok(output)
    }
}

fn run_caller(script: &str, options: CallerOptions) {
    let (now, reader) = (Duration::ZERO, FrameReader::default());
    let mut runner = CallerRunner { caller: Caller::new(options), now, reader, framed: 0 };
    goldenscript::run(&mut runner, format!("tests/scripts/caller/{script}")).unwrap();
}

fn run_callee(script: &str, options: CalleeOptions) {
    let (now, reader) = (Duration::ZERO, FrameReader::default());
    let mut runner = CalleeRunner { callee: Callee::new(options, now), now, reader };
    goldenscript::run(&mut runner, format!("tests/scripts/callee/{script}")).unwrap();
}

#[test]
fn answers() {
    run_caller("answers", CallerOptions::default());
}

#[test]
fn broken() {
    run_caller("broken", CallerOptions::default());
}

#[test]
fn backoff() {
    run_caller("backoff", CallerOptions::default());
}

#[test]
fn deadlines() {
    run_caller("deadlines", CallerOptions::default());
}

#[test]
fn probes() {
    run_caller("probes", CallerOptions::default());
}

#[test]
fn caller_limits() {
    run_caller("limits", CallerOptions { requests_max: 3, unsent_bytes_max: 1_000, ..CallerOptions::default() });
}

#[test]
fn requests() {
    run_callee("requests", CalleeOptions::default());
}

#[test]
fn stopping() {
    run_callee("stopping", CalleeOptions::default());
}

#[test]
fn silence() {
    run_callee("silence", CalleeOptions::default());
}

#[test]
fn callee_limits() {
    let options = CalleeOptions {
        requests_max: 3,
        request_bytes_max: 2_000,
        answer_bytes_pause: 500,
        answer_bytes_max: 3_000,
        ..CalleeOptions::default()
    };
    run_callee("limits", options);
}
