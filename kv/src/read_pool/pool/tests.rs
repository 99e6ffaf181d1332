//! The pool with its threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use prometheus::Registry;

use super::super::pace::Pace;
use super::*;

fn pool(reads: usize, scans: usize, jobs: usize) -> ReadPool {
    let config = PoolConfig { workers: Workers::Threads { reads, scans }, jobs, ..PoolConfig::default() };
    ReadPool::new(&config, PoolMetrics::new(&Registry::new()).unwrap())
}

/// The cost of a statement that is at a level.
fn cost(level: Level) -> Cost {
    let mut cost = Cost::default();
    while level != Level::Point && cost.level() < level {
        cost.add(1, Duration::from_millis(5), true);
    }
    cost
}

/// A job that says when it runs, and ends when it is released.
fn held() -> (impl FnMut(usize) -> ControlFlow<bool> + Send + 'static, Receiver<()>, SyncSender<()>) {
    let (started, starts) = sync_channel(1);
    let (release, released) = sync_channel::<()>(1);
    let work = move |_| {
        started.send(()).unwrap();
        ControlFlow::Break(released.recv().is_ok())
    };
    (work, starts, release)
}

/// Waits for what a thread does next, without blocking the runtime.
async fn started(starts: Receiver<()>) {
    tokio::task::spawn_blocking(move || starts.recv().unwrap()).await.unwrap();
}

#[tokio::test]
async fn running_and_waiting_jobs_are_bounded() {
    let pool = pool(1, 1, 2);
    let (work, starts, release) = held();
    let running = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(Demand::point(), work).await.map(|(result, _)| result) }
    });
    started(starts).await;
    let mut waiting = Box::pin(pool.run_point(|| 7));
    assert!(futures::poll!(&mut waiting).is_pending());
    assert_eq!(pool.run_point(|| 8).await, Err(PoolError::Shed));
    release.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Ok(true));
    assert_eq!(waiting.await, Ok(7));
    assert_eq!(pool.run_point(|| 9).await, Ok(9));
}

#[tokio::test]
async fn a_panic_fails_only_its_own_job() {
    let pool = pool(1, 1, 1);
    assert_eq!(pool.run_point(|| panic!("planted")).await, Err::<(), _>(PoolError::Lost));
    assert_eq!(pool.run_point(|| 1).await, Ok(1));
}

/// A scan that runs for ever shares no thread with points, also while it is new and short.
#[tokio::test]
async fn a_point_runs_while_scans_run_for_ever() {
    let pool = pool(1, 1, 100);
    let stop = Arc::new(AtomicBool::new(false));
    let scans: Vec<_> = (0..8)
        .map(|_| {
            let (pool, stop) = (pool.clone(), stop.clone());
            let slice =
                move |_| if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            tokio::spawn(async move { pool.run(Demand::scan(Cost::default(), 1), slice).await })
        })
        .collect();
    for n in 0..100 {
        assert_eq!(pool.run_point(move || n).await, Ok(n));
        tokio::task::yield_now().await;
    }
    stop.store(true, Ordering::Relaxed);
    for scan in scans {
        assert!(scan.await.unwrap().is_ok());
    }
}

/// The job that is shed waits for the thread of scans. Its caller learns it at once.
#[tokio::test]
async fn a_point_displaces_a_scan_that_waits() {
    let pool = pool(1, 1, 2);
    let (work, starts, release) = held();
    let long = cost(Level::Long);
    let mut running = Box::pin(pool.run(Demand::scan(long, 1), work));
    assert!(futures::poll!(&mut running).is_pending());
    started(starts).await;
    let mut waiting = Box::pin(pool.run(Demand::scan(long, 1), |_| ControlFlow::Break(())));
    assert!(futures::poll!(&mut waiting).is_pending());
    assert_eq!(pool.run_point(|| 1).await, Ok(1));
    assert_eq!(waiting.await.map(|_| ()), Err(PoolError::Shed));
    release.send(()).unwrap();
    assert_eq!(running.await.map(|(result, _)| result), Ok(true));
}

/// A caller that leaves ends its job at the border of a slice.
#[tokio::test]
async fn a_dropped_job_stops_at_the_next_slice() {
    let pool = pool(1, 1, 1);
    let (started_slice, starts) = sync_channel(1);
    let (release, released) = sync_channel::<()>(1);
    let slices = Arc::new(AtomicUsize::new(0));
    let counted = slices.clone();
    let work = move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        started_slice.send(()).unwrap();
        let _ = released.recv();
        ControlFlow::<()>::Continue(())
    };
    let mut running = Box::pin(pool.run(Demand::scan(Cost::default(), 1), work));
    assert!(futures::poll!(&mut running).is_pending());
    started(starts).await;
    drop(running);
    release.send(()).unwrap();
    // There is one place: it is free once the job has ended.
    while pool.run_point(|| ()).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(slices.load(Ordering::SeqCst), 1);
}

/// A job falls while it runs: it ends with what it cost, on the thread of scans.
#[tokio::test]
async fn a_scan_falls_to_the_threads_of_lower_priority() {
    let pool = pool(1, 1, 4);
    let mut names = Vec::new();
    // One more slice, however short, and it is not short any more.
    let mut almost = Cost::default();
    almost.add(1, Duration::from_nanos(5_999_999), true);
    let slice = move |_| {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        if names.last() != Some(&name) {
            names.push(name);
        }
        if names.len() == 2 { ControlFlow::Break((names.clone(), self::nice())) } else { ControlFlow::Continue(()) }
    };
    let ((names, nice), cost) = pool.run(Demand::scan(almost, 1), slice).await.unwrap();
    assert_eq!(names, ["cortado-read-0", "cortado-scan-0"]);
    assert!(cost.level() > Level::Short);
    let own = self::nice();
    assert_eq!(nice, if cfg!(target_os = "linux") { (own + 10).min(19) } else { own });
}

#[cfg(target_os = "linux")]
fn nice() -> i32 {
    rustix::process::getpriority_process(None).unwrap()
}

#[cfg(not(target_os = "linux"))]
fn nice() -> i32 {
    0
}

/// Starts a rest that nobody would wait for, and returns once it has begun.
async fn resting(threads: &Arc<Threads>) -> tokio::task::JoinHandle<()> {
    let of_thread = threads.clone();
    let resting = tokio::task::spawn_blocking(move || of_thread.rest_for(Duration::from_secs(3_600)));
    while threads.resting() == 0 {
        tokio::task::yield_now().await;
    }
    resting
}

async fn ends_soon<T>(task: tokio::task::JoinHandle<T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), task).await.expect("nobody woke it").unwrap()
}

#[tokio::test]
async fn a_rest_ends_with_a_cheaper_job_and_with_the_pool() {
    let pool = pool(1, 1, 8);
    let threads = pool.threads.as_ref().unwrap().0.clone();
    let (work, starts, release) = held();
    let running = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(Demand::scan(cost(Level::Long), 1), work).await }
    });
    started(starts).await;
    let rest = resting(&threads).await;
    // The only thread of scans is held, so this job waits.
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { pool.run(Demand::scan(cost(Level::Medium), 1), |_| ControlFlow::Break(7)).await }
    });
    ends_soon(rest).await;
    release.send(()).unwrap();
    assert!(ends_soon(running).await.is_ok());
    assert_eq!(ends_soon(waiting).await.map(|(result, _)| result), Ok(7));
    let rest = resting(&threads).await;
    threads.close();
    ends_soon(rest).await;
}

/// A pool is contended as long as one of its threads is.
#[test]
fn threads_rest_as_their_processors_are_wanted() {
    let pool = pool(1, 2, 8);
    let threads = &pool.threads.as_ref().unwrap().0;
    let (mut one, mut other) = (Pace::default(), Pace::default());
    let (slice, late) = (Duration::from_micros(10), Duration::from_millis(1));
    assert_eq!((threads.paced(&mut one, (slice, Duration::ZERO)), threads.rested()), (false, 0.0));
    assert!(threads.paced(&mut one, (slice, late)) && threads.paced(&mut other, (slice, late)));
    let rested = threads.rested();
    assert!(rested >= 2e-5, "{rested}");
    assert!(threads.paced(&mut one, (slice, Duration::ZERO)), "the other one still is");
    assert!(!threads.paced(&mut other, (slice, Duration::ZERO)));
    assert_eq!(threads.rested(), rested, "no rest in between");
}

/// What waits is answered, and what runs ends with its slice.
#[tokio::test]
async fn the_last_handle_ends_the_threads() {
    let pool = pool(1, 1, 4);
    let (work, starts, release) = held();
    let threads = Arc::downgrade(&pool.threads.as_ref().unwrap().0);
    let mut running = Box::pin(pool.run(Demand::point(), work));
    assert!(futures::poll!(&mut running).is_pending());
    started(starts).await;
    release.send(()).unwrap();
    assert!(running.await.is_ok());
    drop(pool);
    assert!(threads.upgrade().is_none());
}

#[tokio::test]
async fn in_the_caller_a_job_yields_between_slices() {
    let pool = ReadPool::in_caller();
    let mut slices = Vec::new();
    let work = move |steps| {
        slices.push(steps);
        if slices.len() == 3 { ControlFlow::Break(slices.clone()) } else { ControlFlow::Continue(()) }
    };
    let mut running = Box::pin(pool.run(Demand::scan(Cost::default(), usize::MAX), work));
    assert!(futures::poll!(&mut running).is_pending());
    assert!(futures::poll!(&mut running).is_pending());
    assert_eq!(running.await.map(|(slices, _)| slices), Ok(vec![64, 128, 256]));
}
