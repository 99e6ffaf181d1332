//! Which job runs next, and which one is shed: the queues of the read pool.
//!
//! Each level has a queue, in which jobs take turns. A group of threads serves two levels. Among those that wait, it
//! takes the one that has had the least time in relation to its weight; at a tie, the higher one. A level that was
//! empty begins where the others are: it has saved no time, and owes none. So a job of a higher level runs with the
//! next free thread unless its level has used up its share, and a lower level gets its share of the time however many
//! jobs of the higher one wait.
//!
//! Pure: the time that a slice took is an argument.

use std::collections::VecDeque;
use std::time::Duration;

use super::cost::Level;

/// The threads that serve a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Those of points and short scans.
    Read,
    /// Those of longer scans.
    Scan,
}

impl Group {
    pub(super) const ALL: [Group; 2] = [Group::Read, Group::Scan];

    /// The group that serves a level.
    pub(super) fn of(level: Level) -> Group {
        if level <= Level::Short { Group::Read } else { Group::Scan }
    }

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// The weight of a level in its group.
fn weight(level: Level) -> u128 {
    match level {
        Level::Point => 8,
        Level::Medium => 4,
        Level::Short | Level::Long => 1,
    }
}

/// A job that was admitted: what it takes of the bounds until it leaves.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// In the order of admission.
    number: u64,
    bytes: usize,
}

/// A job and its place.
pub(super) struct Admitted<J> {
    pub(super) place: Place,
    pub(super) job: J,
}

/// What an admission did.
pub(super) struct Entered<J> {
    /// The job, if it was not admitted.
    pub(super) refused: Option<J>,
    /// Jobs of lower levels that made room.
    pub(super) shed: Vec<(Level, J)>,
    /// Jobs whose callers left, which made room as well.
    pub(super) gone: Vec<J>,
}

/// The queue of a level.
struct Queue<J> {
    waiting: VecDeque<Admitted<J>>,
    /// The time that the level has had, in nanoseconds divided by its weight.
    time: u128,
}

/// The jobs of a pool, running or waiting.
///
/// Invariants:
/// 1. At most `jobs_max` jobs are admitted, with at most `bytes_max` bytes in all. What waits is admitted.
/// 2. A job is shed only for one of a higher level, and only if none of a level below its own waits.
pub(super) struct Levels<J> {
    jobs_max: usize,
    bytes_max: usize,
    jobs: usize,
    bytes: usize,
    queues: [Queue<J>; Level::ALL.len()],
    /// The time of the level that each group served last.
    served: [u128; Group::ALL.len()],
    last: u64,
}

impl<J> Levels<J> {
    /// No jobs. At most `jobs_max` jobs and `bytes_max` bytes of results are admitted; a job of more bytes counts as so
    /// many, and then runs alone.
    pub(super) fn new(jobs_max: usize, bytes_max: usize) -> Levels<J> {
        let queues = Level::ALL.map(|_| Queue { waiting: VecDeque::new(), time: 0 });
        Levels { jobs_max, bytes_max, jobs: 0, bytes: 0, queues, served: [0; Group::ALL.len()], last: 0 }
    }

    /// Admits a job whose result may take `bytes`, and queues it. If it does not fit, first the jobs leave whose
    /// callers did (`is_gone`), then the youngest ones of the lowest level below its own.
    pub(super) fn enter(&mut self, level: Level, bytes: usize, job: J, is_gone: impl Fn(&J) -> bool) -> Entered<J> {
        let bytes = bytes.min(self.bytes_max);
        let mut entered = Entered { refused: None, shed: Vec::new(), gone: Vec::new() };
        if !self.has_room(bytes) {
            entered.gone = self.remove_gone(is_gone);
        }
        while !self.has_room(bytes) {
            match self.shed_below(level) {
                Some(shed) => entered.shed.push(shed),
                None => {
                    entered.refused = Some(job);
                    return entered;
                }
            }
        }
        self.jobs += 1;
        self.bytes += bytes;
        self.last += 1;
        self.queue(level, Admitted { place: Place { number: self.last, bytes }, job });
        entered
    }

    /// The next job for a thread of the group.
    pub(super) fn next(&mut self, group: Group) -> Option<(Level, Admitted<J>)> {
        let of_group = Level::ALL.into_iter().filter(|level| Group::of(*level) == group);
        let waiting = of_group.filter(|level| !self.of(*level).waiting.is_empty());
        let level = waiting.min_by_key(|level| (self.of(*level).time, *level))?;
        self.served[group.index()] = self.of(level).time;
        let admitted = self.of_mut(level).waiting.pop_front()?;
        Some((level, admitted))
    }

    /// Charges a level for a slice.
    pub(super) fn charge(&mut self, level: Level, elapsed: Duration) {
        self.of_mut(level).time += elapsed.as_nanos() / weight(level);
    }

    /// Queues a job behind the others of its level.
    pub(super) fn queue(&mut self, level: Level, admitted: Admitted<J>) {
        let served = self.served[Group::of(level).index()];
        let queue = self.of_mut(level);
        if queue.waiting.is_empty() {
            queue.time = queue.time.max(served);
        }
        queue.waiting.push_back(admitted);
    }

    /// A job ends.
    pub(super) fn leave(&mut self, place: Place) {
        assert!(self.jobs > 0 && self.bytes >= place.bytes, "a job that leaves was admitted");
        self.jobs -= 1;
        self.bytes -= place.bytes;
    }

    /// Takes all jobs that wait.
    pub(super) fn clear(&mut self) -> Vec<J> {
        self.remove_gone(|_| true)
    }

    /// The number of jobs of a level that wait.
    pub(super) fn waiting(&self, level: Level) -> usize {
        self.of(level).waiting.len()
    }

    /// The number of jobs that wait for a thread of the group.
    pub(super) fn waiting_for(&self, group: Group) -> usize {
        Level::ALL.into_iter().filter(|level| Group::of(*level) == group).map(|level| self.waiting(level)).sum()
    }

    /// The bytes that the results of the admitted jobs may take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.jobs < self.jobs_max && self.bytes + bytes <= self.bytes_max
    }

    fn remove_gone(&mut self, is_gone: impl Fn(&J) -> bool) -> Vec<J> {
        let mut gone = Vec::new();
        for level in Level::ALL {
            let waiting = std::mem::take(&mut self.of_mut(level).waiting);
            for admitted in waiting {
                if is_gone(&admitted.job) {
                    self.leave(admitted.place);
                    gone.push(admitted.job);
                } else {
                    self.of_mut(level).waiting.push_back(admitted);
                }
            }
        }
        gone
    }

    /// Takes the youngest job that waits in the lowest level below `level`.
    fn shed_below(&mut self, level: Level) -> Option<(Level, J)> {
        let below = Level::ALL.into_iter().rev().take_while(|lower| *lower > level);
        let lowest = below.into_iter().find(|lower| self.waiting(*lower) > 0)?;
        let waiting = &mut self.of_mut(lowest).waiting;
        let (youngest, _) = waiting.iter().enumerate().max_by_key(|(_, admitted)| admitted.place.number)?;
        let Admitted { place, job } = waiting.remove(youngest)?;
        self.leave(place);
        Some((lowest, job))
    }

    fn of(&self, level: Level) -> &Queue<J> {
        &self.queues[level.index()]
    }

    fn of_mut(&mut self, level: Level) -> &mut Queue<J> {
        &mut self.queues[level.index()]
    }
}

#[cfg(test)]
mod tests;
