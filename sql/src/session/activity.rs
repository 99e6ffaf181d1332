//! What a session does, as other sessions see it in `pg_stat_activity`.
//!
//! The session notes it, the node's list of sessions reads it. A note costs an uncontended lock, and copies the
//! beginning of the text at most.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::sessions::{SessionInfo, SessionState, SessionWait};

/// Bytes of a text that are kept, as PostgreSQL keeps by default.
const QUERY_BYTES: usize = 1024;

/// What a session does.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    info: Mutex<SessionInfo>,
}

/// A note that a session waits. Its drop removes it.
pub(crate) struct Waiting<'a>(&'a Activity);

impl Activity {
    /// Sets what does not change, and that the session is idle.
    pub(crate) fn open(&self, info: SessionInfo) {
        *self.info.lock() = SessionInfo { state_change: info.started, ..info };
    }

    /// The session, as it is now.
    pub(crate) fn info(&self) -> SessionInfo {
        self.info.lock().clone()
    }

    /// The session runs a text, since `now`. The messages of one text count as one: `now` is called for the first.
    pub(crate) fn begin(&self, text: &Arc<str>, now: impl FnOnce() -> i64) {
        let mut info = self.info.lock();
        if info.state == SessionState::Active && Arc::ptr_eq(&info.query, text) {
            return;
        }
        info.query = if text.len() <= QUERY_BYTES { Arc::clone(text) } else { beginning(text).into() };
        start(&mut info, now());
    }

    /// The session runs a text of which there is no copy, since `now`.
    pub(crate) fn begin_text(&self, text: &str, now: i64) {
        let mut info = self.info.lock();
        info.query = beginning(text).into();
        start(&mut info, now);
    }

    /// When the statement that it runs came, in microseconds since 2000-01-01 UTC.
    pub(crate) fn statement_started(&self) -> Option<i64> {
        self.info.lock().query_start
    }

    /// The start of the transaction of a session that is active.
    pub(crate) fn set_transaction(&self, started: i64) {
        self.info.lock().transaction_start = Some(started);
    }

    /// The session waits for its client, since `now`.
    pub(crate) fn rest(&self, state: SessionState, now: impl FnOnce() -> i64) {
        let mut info = self.info.lock();
        if state == SessionState::Idle {
            info.transaction_start = None;
        }
        if info.state != state {
            (info.state, info.state_change) = (state, now());
        }
    }

    /// `application_name` has changed.
    pub(crate) fn set_application(&self, name: &str) {
        self.info.lock().application = name.into();
    }

    /// The session waits, as long as the result lives.
    pub(crate) fn wait(&self, wait: SessionWait) -> Waiting<'_> {
        self.info.lock().wait = Some(wait);
        Waiting(self)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.info.lock().wait = None;
    }
}

fn start(info: &mut SessionInfo, now: i64) {
    (info.state, info.query_start, info.state_change) = (SessionState::Active, Some(now), now);
}

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUERY_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_times_and_texts_are_bounded() {
        let activity = Activity::default();
        activity.open(SessionInfo { pid: 7, started: 1, ..SessionInfo::default() });
        assert_eq!((activity.info().state, activity.info().state_change), (SessionState::Idle, 1));
        let text: Arc<str> = "select 1".into();
        activity.begin(&text, || 5);
        activity.set_transaction(4);
        activity.begin(&text, || panic!("the same text goes on"));
        let info = activity.info();
        assert_eq!((info.query_start, info.state_change, info.transaction_start), (Some(5), 5, Some(4)));
        activity.rest(SessionState::IdleInTransaction, || 6);
        activity.rest(SessionState::IdleInTransaction, || panic!("nothing has changed"));
        let info = activity.info();
        assert_eq!((info.query_start, info.state_change, info.transaction_start), (Some(5), 6, Some(4)));
        activity.begin(&text, || 7);
        assert_eq!(activity.info().query_start, Some(7), "it is run again");
        activity.rest(SessionState::Idle, || 8);
        assert_eq!((activity.info().transaction_start, &*activity.info().query), (None, "select 1"));
        activity.begin_text(&"é".repeat(600), 9);
        assert_eq!((activity.info().query.len(), activity.info().query_start), (1024, Some(9)));
        activity.begin(&"x".repeat(2000).into(), || 10);
        assert_eq!(activity.info().query.len(), 1024);
        let waiting = activity.wait(SessionWait::Sleep);
        assert_eq!(activity.info().wait, Some(SessionWait::Sleep));
        drop(waiting);
        assert_eq!(activity.info().wait, None);
    }
}
