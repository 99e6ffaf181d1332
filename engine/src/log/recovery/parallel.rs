//! A parallel map with few threads. The result depends on the items alone, never on the timing of threads.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// `work` of each item, in the order of the items. One of the `threads` is the caller's: 1 starts none. If the system
/// refuses a thread there are fewer.
pub(crate) fn parallel_map<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let helpers = threads.min(items.len()).saturating_sub(1);
    if helpers == 0 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, work(item)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let start = |_| Builder::new().name("cortado-recovery".to_owned()).spawn_scoped(scope, run).ok();
        let helpers: Vec<_> = (0..helpers).map_while(start).collect();
        let mut done = run();
        for helper in helpers {
            match helper.join() {
                Ok(more) => done.extend(more),
                // Nothing here panics. If it did, this thread would, too.
                Err(panic) => resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;

    use parking_lot::Mutex;

    use super::parallel_map;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        for threads in [0, 1, 2, 7] {
            assert_eq!(
                parallel_map(threads, &items, |item| item * 2),
                items.iter().map(|item| item * 2).collect::<Vec<_>>()
            );
        }
        assert_eq!(parallel_map(4, &[], |item: &u64| *item), Vec::<u64>::new());
    }

    #[test]
    fn several_threads_work_at_once() {
        let ids = Mutex::new(BTreeSet::new());
        let note = || ids.lock().insert(format!("{:?}", std::thread::current().id()));
        let all_there = Barrier::new(3);
        parallel_map(3, &[0; 3], |_| {
            note();
            // Passes only if three threads are in here together.
            all_there.wait();
        });
        assert_eq!(ids.lock().len(), 3);
        ids.lock().clear();
        parallel_map(1, &[0; 3], |_| note());
        assert_eq!(ids.into_inner(), BTreeSet::from([format!("{:?}", std::thread::current().id())]));
    }
}
