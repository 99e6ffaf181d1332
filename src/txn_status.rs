//! `cortado txn status`: what became of a transaction, for a client that was told that the outcome of its commit is
//! unknown.

use kv::Key;
use serde::Serialize;
use tso::Timestamp;

use crate::client::{self, ClientError};
use crate::config::HostPort;
use crate::proto::TxnStatusRequest;
use crate::proto::txn_status_response::State;

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Outcome {
    /// `committed`, `rolled back`, `undecided`, `missing` or `collected`
    state: &'static str,
    commit_ts: Option<String>,
    /// What it means for the client.
    meaning: &'static str,
}

impl Outcome {
    fn new(state: State, commit_ts: Timestamp) -> Result<Outcome, ClientError> {
        let (state, meaning) = match state {
            State::Committed => ("committed", "its changes are there"),
            State::RolledBack => ("rolled back", "its changes are not there and never will be"),
            State::Undecided => ("undecided", "its locks are there; ask again in a few seconds"),
            State::Missing => ("missing", "nothing of it is there: it has not arrived, and still may within seconds"),
            State::Collected => (
                "collected",
                "it is older than the safe point of garbage collection: what became of it is not known any more",
            ),
            State::Unknown => return Err(ClientError::Malformed("a state that this version does not know".to_owned())),
        };
        let commit_ts = (state == "committed").then(|| commit_ts.to_string());
        Ok(Outcome { state, commit_ts, meaning })
    }

    fn render(&self, json: bool) -> Result<String, ClientError> {
        if json {
            return serde_json::to_string_pretty(self).map_err(|e| ClientError::Malformed(e.to_string()));
        }
        let at = self.commit_ts.as_ref().map(|commit_ts| format!(" at {commit_ts}")).unwrap_or_default();
        Ok(format!("{}{at}: {}", self.state, self.meaning))
    }
}

/// Asks the node at `host`, and renders the answer.
pub(crate) async fn run(
    host: &HostPort,
    start_ts: Timestamp,
    primary: &Key,
    json: bool,
) -> Result<String, ClientError> {
    let mut node = client::connect(host, None).await?;
    let request = TxnStatusRequest { start_ts: start_ts.raw(), primary: primary.as_bytes().to_vec() };
    let answer = node.txn_status(request).await.map_err(|status| ClientError::refused(host, &status))?.into_inner();
    Outcome::new(answer.state(), Timestamp::from_raw(answer.commit_ts))?.render(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_rendered_with_their_meaning() {
        let text = |state| Outcome::new(state, Timestamp::new(5, 1)).unwrap().render(false).unwrap();
        assert_eq!(text(State::Committed), "committed at 5.1: its changes are there");
        assert!(text(State::RolledBack).starts_with("rolled back: "));
        assert!(text(State::Undecided).contains("ask again") && text(State::Missing).contains("still may"));
        assert!(text(State::Collected).contains("not known any more"));
        assert!(Outcome::new(State::Unknown, Timestamp::ZERO).is_err());
        let json = Outcome::new(State::Committed, Timestamp::new(5, 1)).unwrap().render(true).unwrap();
        assert!(json.contains("\"commit_ts\": \"5.1\""), "{json}");
    }
}
