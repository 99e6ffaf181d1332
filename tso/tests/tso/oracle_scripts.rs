//! Golden scripts of the oracle. Each command prints its result. `now` is the wall clock, `mono` the monotonic clock;
//! `at` sets both. `leap` is the time to which a `start` leaps.

use std::error::Error;

use goldenscript::{Command, Context};
use tso::oracle::{ClockReading, Oracle};
use tso::{LeaderTerm, Timestamp};

#[derive(Default)]
struct Runner {
    oracle: Oracle,
    /// The last mark that `extend` returned, for `raised` without a value.
    asked: Option<Timestamp>,
    /// The monotonic clock. It stands still unless a command sets it.
    mono_ms: u64,
}

impl goldenscript::Runner for Runner {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let mut number = |key: &str| args.take_key(key).map(str::parse::<u64>).transpose();
        let (term, wall_ms, mark_ms) = (number("term")?, number("now")?, number("mark")?);
        let at_ms = number("at")?;
        self.mono_ms = at_ms.or(number("mono")?).unwrap_or(self.mono_ms);
        let now = at_ms.or(wall_ms).map(|wall_ms| ClockReading { wall_ms, mono_ms: self.mono_ms });
        let count = number("count")?.unwrap_or(1);
        let leap_ms = number("leap")?;
        args.reject_next()?;
        let term = LeaderTerm(term.unwrap_or(1));
        let mark = mark_ms.map(|ms| Timestamp::new(ms, 0));
        let output = match command.name.as_str() {
            "start" => {
                self.oracle.start(term, mark.unwrap_or_default(), now.ok_or("now?")?, leap_ms);
                "started".to_owned()
            }
            "stop" => {
                self.oracle.stop();
                "stopped".to_owned()
            }
            "extend" => match self.oracle.extend(now.ok_or("now?")?) {
                Some(mark) => {
                    self.asked = Some(mark);
                    format!("raise the mark to {mark}")
                }
                None => "nothing to do".to_owned(),
            },
            "raised" => {
                self.oracle.raised(term, mark.or(self.asked).ok_or("which mark?")?);
                "raised".to_owned()
            }
            "raise_failed" => {
                self.oracle.raise_failed(term);
                "failed".to_owned()
            }
            "allocate" => match self.oracle.allocate(now.ok_or("now?")?, u32::try_from(count)?) {
                Ok(range) => format!("{} to {}", range.first(), range.last),
                Err(refusal) => format!("refused: {refusal}"),
            },
            "offset" => match self.oracle.offset_ms(now.ok_or("now?")?) {
                Some(offset_ms) => format!("{offset_ms} ms ahead of the wall clock"),
                None => "not the leader".to_owned(),
            },
            name => return Err(format!("unknown command {name}").into()),
        };
        Ok(output)
    }
}

fn run(script: &str) {
    goldenscript::run(&mut Runner::default(), format!("tests/scripts/oracle/{script}")).unwrap();
}

#[test]
fn clock() {
    run("clock");
}

#[test]
fn leap() {
    run("leap");
}

#[test]
fn leaders() {
    run("leaders");
}

#[test]
fn window() {
    run("window");
}
