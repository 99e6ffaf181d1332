//! Runs deep recursion on a large stack.
//!
//! Parser and binder walk syntax trees recursively. A worker thread's 2 MiB stack is too small for the deepest trees
//! that the parser's limits allow. Such statements are rare enough to run on a thread of their own. The executor cannot
//! move there, so the threads of sessions have stacks of this size, too; the depth of plans is bounded to fit.

use crate::error::{SqlError, SqlState};

/// Size of the large stack. Only touched pages take memory.
pub(crate) const STACK_BYTES: usize = 128 << 20;

/// Runs `work`, on a large stack if `deep`.
pub(crate) fn run<T: Send>(deep: bool, work: impl FnOnce() -> Result<T, SqlError> + Send) -> Result<T, SqlError> {
    if !deep {
        return work();
    }
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("cortado-deep".to_owned()).stack_size(STACK_BYTES);
        match builder.spawn_scoped(scope, work) {
            Ok(running) => running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => {
                let message = format!("cannot allocate a stack for a statement nested this deep: {error}");
                Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_work_has_enough_stack_and_its_panics_propagate() {
        fn depth(n: usize) -> usize {
            let frame = std::hint::black_box([n; 256]);
            if n == 0 { 0 } else { 1 + depth(frame[n % 256] - 1) }
        }
        assert_eq!(run(true, || Ok(depth(10_000))), Ok(10_000));
        assert_eq!(run(false, || Ok(depth(10))), Ok(10));
        assert!(std::panic::catch_unwind(|| run::<()>(true, || panic!("planted"))).is_err());
    }
}
