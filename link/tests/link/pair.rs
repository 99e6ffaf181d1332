//! Both sides of a link with a network between them that a random schedule drives: it takes and delivers bytes in any
//! pieces, breaks at any byte, and what it has taken may still arrive after the requesting side gave the link up.
//!
//! Checked for every request:
//! 1. It ends exactly once, unless its caller went away.
//! 2. It is executed at most once.
//! 3. If its outcome says that it was not executed (unreachable, busy), it was not and never will be.
//! 4. An answer is its own.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use link::callee::{Action, Callee};
use link::caller::{Caller, Submission};
use link::frame::FrameReader;
use link::message::{Message, RequestId};
use link::{CallError, CalleeOptions, CallerOptions, Kind, Outcome};
use proptest::prelude::*;

/// One step of the schedule. Numbers choose among what is possible, and are taken modulo it.
#[derive(Clone, Debug)]
enum Step {
    Submit {
        len: usize,
        timeout_ms: u64,
    },
    GoAway(usize),
    /// The network takes so many bytes of the requesting side, and delivers so many.
    Send {
        take: usize,
        deliver: usize,
    },
    /// The same for the serving side.
    Reply {
        take: usize,
        deliver: usize,
    },
    Finish(usize),
    Pass(u64),
    Connect(bool),
    Break {
        deliver: usize,
    },
    Stop,
}

fn any_step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![9 => 0..100_usize, 1 => 30_000..200_000_usize];
    let bytes = || prop_oneof![4 => 0..200_usize, 1 => Just(1 << 20)];
    prop_oneof![
        8 => (len, 1..3_000_u64).prop_map(|(len, timeout_ms)| Step::Submit { len, timeout_ms }),
        2 => any::<usize>().prop_map(Step::GoAway),
        8 => (bytes(), bytes()).prop_map(|(take, deliver)| Step::Send { take, deliver }),
        6 => (bytes(), bytes()).prop_map(|(take, deliver)| Step::Reply { take, deliver }),
        6 => any::<usize>().prop_map(Step::Finish),
        2 => (0..600_u64).prop_map(Step::Pass),
        2 => (0..4).prop_map(|n| Step::Connect(n > 0)),
        1 => bytes().prop_map(|deliver| Step::Break { deliver }),
        1 => Just(Step::Stop),
    ]
}

/// What became of a request.
#[derive(Debug, Default)]
struct Fate {
    executed: usize,
    outcome: Option<Outcome>,
    left: bool,
}

/// One connection: what the network holds in each direction.
struct Connection {
    callee: Callee<u32>,
    requests: FrameReader,
    answers: FrameReader,
    /// Made into frames, not taken by the network.
    unsent: BytesMut,
    unsent_answers: BytesMut,
    /// Taken, not delivered.
    on_the_way: BytesMut,
    on_the_way_back: BytesMut,
    written: u64,
    /// Requests that are being executed, with their names.
    executing: Vec<(RequestId, u32)>,
}

struct World {
    now: Duration,
    caller: Caller<u32>,
    names: Vec<RequestId>,
    fates: BTreeMap<u32, Fate>,
    connecting: bool,
    connection: Option<Connection>,
}

impl World {
    fn new() -> World {
        let caller = CallerOptions { requests_max: 20, unsent_bytes_max: 300_000, ..CallerOptions::default() };
        World {
            now: Duration::ZERO,
            caller: Caller::new(caller),
            names: Vec::new(),
            fates: BTreeMap::new(),
            connecting: false,
            connection: None,
        }
    }

    fn end(&mut self, ended: impl IntoIterator<Item = (u32, Outcome)>) {
        for (name, outcome) in ended {
            let fate = self.fates.get_mut(&name).unwrap();
            assert!(fate.outcome.is_none() && !fate.left, "request {name} ended twice: {fate:?} and {outcome:?}");
            fate.outcome = Some(outcome);
        }
    }

    fn fail(&mut self, ended: Vec<(u32, CallError)>) {
        self.end(ended.into_iter().map(|(name, error)| (name, Err(error))));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Submit { len, timeout_ms } => self.submit(len, timeout_ms),
            Step::GoAway(which) => {
                if let Some(at) = which.checked_rem(self.names.len())
                    && let Some(name) = self.caller.cancel(self.names[at])
                {
                    let fate = self.fates.get_mut(&name).unwrap();
                    assert!(fate.outcome.is_none(), "{fate:?}");
                    fate.left = true;
                }
            }
            Step::Send { take, deliver } => self.send(take, deliver),
            Step::Reply { take, deliver } => self.reply(take, deliver),
            Step::Finish(which) => {
                if let Some(connection) = &mut self.connection
                    && let Some(at) = which.checked_rem(connection.executing.len())
                {
                    let (id, name) = connection.executing.swap_remove(at);
                    connection.callee.answered(id, Ok(answer(name, which % 3 * 20_000)));
                }
            }
            Step::Pass(ms) => self.pass(ms),
            Step::Connect(succeeds) => self.connect(succeeds),
            Step::Break { deliver } => self.break_off(deliver),
            Step::Stop => {
                if let Some(connection) = &mut self.connection {
                    connection.callee.stop();
                }
            }
        }
    }

    fn submit(&mut self, len: usize, timeout_ms: u64) {
        let name = self.fates.len() as u32;
        self.fates.insert(name, Fate::default());
        let mut payload = BytesMut::new();
        payload.put_u32(name);
        payload.resize(4 + len, 7);
        let timeout = Duration::from_millis(timeout_ms);
        let request = Submission { kind: Kind::new(1), payload: payload.freeze(), timeout };
        match self.caller.submit(self.now, request, name) {
            Ok(accepted) => {
                self.connecting |= accepted.connect;
                self.names.push(accepted.id);
            }
            Err(error) => {
                assert!(!matches!(error, CallError::Lost(_)));
                self.end([(name, Err(error))]);
            }
        }
    }

    fn connect(&mut self, succeeds: bool) {
        if !std::mem::take(&mut self.connecting) {
            return;
        }
        if !succeeds {
            let ended = self.caller.connect_failed(self.now, "refused");
            return self.fail(ended);
        }
        self.caller.connected(self.now);
        let options = CalleeOptions { requests_max: 8, answer_bytes_pause: 50_000, ..CalleeOptions::default() };
        self.connection = Some(Connection {
            callee: Callee::new(options, self.now),
            requests: FrameReader::default(),
            answers: FrameReader::default(),
            unsent: BytesMut::new(),
            unsent_answers: BytesMut::new(),
            on_the_way: BytesMut::new(),
            on_the_way_back: BytesMut::new(),
            written: 0,
            executing: Vec::new(),
        });
    }

    /// As the edge: a new frame is made once the last one is written.
    fn send(&mut self, take: usize, deliver: usize) {
        let Some(connection) = &mut self.connection else { return };
        if connection.unsent.is_empty() {
            self.caller.next_frame(&mut connection.unsent);
        }
        let taken = connection.unsent.split_to(take.min(connection.unsent.len()));
        connection.written += taken.len() as u64;
        connection.on_the_way.extend_from_slice(&taken);
        self.deliver(deliver);
    }

    /// The serving side reads what arrives.
    fn deliver(&mut self, bytes: usize) {
        let Some(connection) = &mut self.connection else { return };
        let arrived = connection.on_the_way.split_to(bytes.min(connection.on_the_way.len()));
        connection.requests.buffer().extend_from_slice(&arrived);
        while connection.callee.takes_input()
            && let Some(message) = connection.requests.next_message().unwrap()
        {
            match connection.callee.received(self.now, message).unwrap() {
                Action::None => {}
                Action::Drop(name) => connection.executing.retain(|(_, executing)| *executing != name),
                Action::Start { id, mut payload, .. } => {
                    let name = payload.get_u32();
                    assert!(payload.iter().all(|byte| *byte == 7));
                    self.fates.get_mut(&name).unwrap().executed += 1;
                    assert_eq!(connection.callee.started(id, name), None);
                    connection.executing.push((id, name));
                }
            }
        }
    }

    fn reply(&mut self, take: usize, deliver: usize) {
        let Some(connection) = &mut self.connection else { return };
        if connection.unsent_answers.is_empty() {
            connection.callee.next_frame(&mut connection.unsent_answers);
        }
        let taken = connection.unsent_answers.split_to(take.min(connection.unsent_answers.len()));
        connection.on_the_way_back.extend_from_slice(&taken);
        let arrived = connection.on_the_way_back.split_to(deliver.min(connection.on_the_way_back.len()));
        connection.answers.buffer().extend_from_slice(&arrived);
        let mut ended = Vec::new();
        while let Some(message) = connection.answers.next_message().unwrap() {
            assert!(!matches!(message, Message::Request { .. }));
            ended.extend(self.caller.received(message).unwrap());
        }
        self.end(ended);
    }

    fn pass(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        let tick = self.caller.timer(self.now);
        self.fail(tick.expired);
        let mut dead = tick.dead;
        if let Some(connection) = &mut self.connection {
            let unread = !connection.unsent_answers.is_empty();
            let tick = connection.callee.timer(self.now, unread);
            connection.executing.retain(|(_, name)| !tick.expired.contains(name));
            dead |= tick.dead;
        }
        if dead {
            self.break_off(usize::MAX);
        }
    }

    /// The requesting side gives the connection up; then so many bytes still arrive at the serving side.
    fn break_off(&mut self, deliver: usize) {
        let Some(connection) = &self.connection else { return };
        let ended = self.caller.broken(self.now, connection.written, "reset");
        self.fail(ended);
        self.deliver(deliver);
        if let Some(mut connection) = self.connection.take() {
            connection.callee.end();
        }
    }

    fn check(&self) {
        for (name, fate) in &self.fates {
            assert!(fate.executed <= 1, "request {name}: {fate:?}");
            match &fate.outcome {
                Some(Ok(payload)) => {
                    assert_eq!(fate.executed, 1, "request {name}: {fate:?}");
                    assert_eq!(*payload, answer(*name, payload.len() - 4));
                }
                Some(Err(CallError::Lost(_))) => {}
                Some(Err(_)) => assert_eq!(fate.executed, 0, "request {name}: {fate:?}"),
                None => {}
            }
        }
    }

    /// Connects and delivers all, until every request has ended.
    fn finish(&mut self) {
        for _ in 0..2_000 {
            if self.caller.pending() == 0 {
                break;
            }
            for step in [
                Step::Connect(true),
                Step::Send { take: usize::MAX, deliver: usize::MAX },
                Step::Finish(0),
                Step::Reply { take: usize::MAX, deliver: usize::MAX },
                Step::Pass(10),
            ] {
                self.step(&step);
            }
        }
        for (name, fate) in &self.fates {
            assert!(fate.left || fate.outcome.is_some(), "request {name} does not end");
        }
    }
}

fn answer(name: u32, len: usize) -> Bytes {
    let mut payload = BytesMut::new();
    payload.put_u32(name);
    payload.resize(4 + len, name as u8);
    payload.freeze()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_and_says_truly_whether_it_was_executed(
        steps in proptest::collection::vec(any_step(), 1..150),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            world.check();
        }
        world.finish();
        world.check();
    }
}
