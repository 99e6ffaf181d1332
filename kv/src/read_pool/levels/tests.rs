//! Order, shares and shedding of jobs, without threads.

use super::*;

const SLICE: Duration = Duration::from_millis(1);

/// Queues of up to `jobs` jobs, whose bytes are not bounded. A job is a number.
fn levels(jobs: usize) -> Levels<u32> {
    Levels::new(jobs, usize::MAX)
}

fn enter(levels: &mut Levels<u32>, level: Level, job: u32) -> Entered<u32> {
    levels.enter(level, 0, job, |_| false)
}

/// Fills a level with jobs from `first` on.
fn fill(levels: &mut Levels<u32>, level: Level, jobs: std::ops::Range<u32>) {
    jobs.for_each(|job| assert_eq!(enter(levels, level, job).refused, None));
}

/// Runs `count` slices of a group, of jobs that never end. Returns their levels and numbers.
fn run(levels: &mut Levels<u32>, group: Group, count: usize) -> Vec<(Level, u32)> {
    let slice = |_| {
        let (level, admitted) = levels.next(group).expect("a job waits");
        let job = admitted.job;
        levels.charge(level, SLICE);
        levels.queue(level, admitted);
        (level, job)
    };
    (0..count).map(slice).collect()
}

#[test]
fn a_point_runs_with_the_next_free_thread_however_many_scans_wait() {
    let mut levels = levels(1_000);
    fill(&mut levels, Level::Short, 0..100);
    run(&mut levels, Group::Read, 500);
    for job in 100..120 {
        fill(&mut levels, Level::Point, job..job + 1);
        let (level, admitted) = levels.next(Group::Read).unwrap();
        assert_eq!((level, admitted.job), (Level::Point, job));
        levels.charge(Level::Point, SLICE / 100);
        levels.leave(admitted.place);
        run(&mut levels, Group::Read, 1);
    }
}

#[test]
fn jobs_of_a_level_take_turns() {
    let mut levels = levels(10);
    fill(&mut levels, Level::Long, 0..3);
    let turns: Vec<u32> = run(&mut levels, Group::Scan, 7).into_iter().map(|(_, job)| job).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2, 0]);
}

/// Each level of a group gets its share of the time while the other one never runs dry.
#[test]
fn no_level_starves() {
    for (group, high, low, share) in
        [(Group::Read, Level::Point, Level::Short, 9), (Group::Scan, Level::Medium, Level::Long, 5)]
    {
        let mut levels = levels(1_000);
        fill(&mut levels, high, 0..500);
        fill(&mut levels, low, 500..501);
        let slices = 900;
        let lower = run(&mut levels, group, slices).into_iter().filter(|(level, _)| *level == low).count();
        assert!((slices / share - 2..=slices / share + 2).contains(&lower), "{low:?} had {lower} of {slices} slices");
    }
}

/// A level has no claim to the time in which it had no jobs, and no debt from the time when it was alone.
#[test]
fn a_level_that_was_empty_begins_where_the_others_are() {
    let mut levels = levels(1_000);
    fill(&mut levels, Level::Long, 0..1);
    run(&mut levels, Group::Scan, 1_000);
    fill(&mut levels, Level::Medium, 1..2);
    let mediums = run(&mut levels, Group::Scan, 10).into_iter().filter(|(level, _)| *level == Level::Medium).count();
    assert!((7..=9).contains(&mediums), "{mediums} of 10");
}

#[test]
fn each_group_serves_its_own_levels() {
    let mut levels = levels(10);
    fill(&mut levels, Level::Medium, 0..1);
    assert!(levels.next(Group::Read).is_none());
    fill(&mut levels, Level::Short, 1..2);
    assert_eq!(levels.waiting_for(Group::Read), 1);
    assert_eq!(levels.next(Group::Scan).map(|(level, _)| level), Some(Level::Medium));
    assert!(levels.next(Group::Scan).is_none());
}

/// The youngest job of the lowest level makes room, one after the other. A job never displaces one of its own level.
#[test]
fn the_lowest_level_is_shed_first() {
    let mut levels = levels(4);
    fill(&mut levels, Level::Long, 0..2);
    fill(&mut levels, Level::Medium, 2..4);
    // The order of turns is not that of admission.
    run(&mut levels, Group::Scan, 1);
    assert_eq!(enter(&mut levels, Level::Long, 10).refused, Some(10));
    for (job, shed) in [(4, (Level::Long, 1)), (5, (Level::Long, 0)), (6, (Level::Medium, 3))] {
        let entered = enter(&mut levels, Level::Short, job);
        assert_eq!((entered.refused, entered.shed), (None, vec![shed]));
    }
    assert_eq!(enter(&mut levels, Level::Medium, 11).refused, Some(11));
    assert_eq!(enter(&mut levels, Level::Point, 12).shed, [(Level::Medium, 2)]);
    assert_eq!(Level::ALL.map(|level| levels.waiting(level)), [1, 3, 0, 0]);
}

/// A job that runs keeps its place, and cannot be shed.
#[test]
fn what_runs_and_what_waits_is_bounded_together() {
    let mut levels = levels(2);
    fill(&mut levels, Level::Long, 0..2);
    let (_, running) = levels.next(Group::Scan).unwrap();
    let (_, second) = levels.next(Group::Scan).unwrap();
    assert_eq!(enter(&mut levels, Level::Point, 2).refused, Some(2));
    levels.leave(running.place);
    assert_eq!(enter(&mut levels, Level::Point, 2).refused, None);
    levels.queue(Level::Long, second);
    assert_eq!(enter(&mut levels, Level::Point, 3).shed, [(Level::Long, 1)]);
}

#[test]
fn the_bytes_of_results_are_bounded() {
    let mut levels = Levels::new(100, 1_000);
    let mut enter = |level, bytes, job| {
        let entered = levels.enter(level, bytes, job, |_| false);
        (entered.refused, entered.shed.into_iter().map(|(_, job)| job).collect::<Vec<u32>>(), levels.bytes())
    };
    assert_eq!(enter(Level::Long, 400, 1), (None, vec![], 400));
    assert_eq!(enter(Level::Long, 400, 2), (None, vec![], 800));
    assert_eq!(enter(Level::Long, 400, 3), (Some(3), vec![], 800));
    assert_eq!(enter(Level::Short, 400, 4), (None, vec![2], 800));
    // More than there is counts as all of it.
    assert_eq!(enter(Level::Point, usize::MAX, 5), (None, vec![1, 4], 1_000));
}

/// Whoever left makes room before anybody is shed.
#[test]
fn jobs_whose_callers_left_make_room_first() {
    let mut levels = levels(3);
    fill(&mut levels, Level::Short, 0..1);
    fill(&mut levels, Level::Long, 1..3);
    let entered = levels.enter(Level::Point, 0, 3, |job| *job == 0);
    assert_eq!((entered.gone, entered.shed, entered.refused), (vec![0], vec![], None));
    assert_eq!(levels.clear().len(), 3);
    assert_eq!((levels.jobs, levels.bytes), (0, 0));
}
