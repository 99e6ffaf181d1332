//! Panics in tasks of the code under test. Tokio catches them, and the caller of the task sees an error that it may
//! take for another. So a hook notes the first panic of each thread.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes the panics of this process from now on.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            FIRST.with_borrow_mut(|first| {
                first.get_or_insert_with(|| panic.to_string());
            });
            report(panic);
        }));
    });
}

/// The first panic of this thread since the last call.
pub(crate) fn take() -> Option<String> {
    FIRST.with_borrow_mut(Option::take)
}
