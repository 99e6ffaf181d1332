//! Metrics of the front end.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use crate::error::SqlState;
use crate::session::control::Control;

/// Kinds of statements, as the label `kind` names them.
const KINDS: [&str; 8] = ["select", "insert", "update", "delete", "schema", "transaction", "setting", "other"];

/// SQLSTATE classes counted by themselves, as the label `class` names them; the others are `other`.
const CLASSES: [&str; 15] =
    ["08", "0A", "22", "23", "25", "26", "34", "40", "42", "53", "54", "57", "XX", "3D", "other"];

/// The front end's metrics.
#[derive(Clone, Debug)]
pub struct SqlMetrics {
    connections: IntGauge,
    handshakes: IntGauge,
    refused: IntCounter,
    statements: Vec<IntCounter>,
    errors: Vec<IntCounter>,
    retries: IntCounter,
    bindings: IntCounter,
    panics: IntCounter,
    requests: Histogram,
}

impl SqlMetrics {
    /// Registers the metrics. Fails if the registry has some of their names already.
    pub fn new(registry: &Registry) -> Result<SqlMetrics, prometheus::Error> {
        let connections = IntGauge::new("sql_connections", "Sessions that are open")?;
        let handshakes = IntGauge::new("sql_handshakes", "Connections that have not finished their startup")?;
        let refused = IntCounter::new("sql_connections_refused_total", "Connections refused for their number")?;
        let statements = IntCounterVec::new(Opts::new("sql_statements_total", "Statements executed"), &["kind"])?;
        let errors = IntCounterVec::new(Opts::new("sql_errors_total", "Errors given to clients"), &["class"])?;
        let retries = IntCounter::new("sql_statement_retries_total", "Statements run again after a conflict")?;
        let bindings = IntCounter::new("sql_bindings_total", "Statements bound because no cached plan held")?;
        let panics = IntCounter::new("sql_panics_total", "Connections that ended in a panic: defects")?;
        let opts = HistogramOpts::new("sql_request_seconds", "From a request's first message to ReadyForQuery")
            .buckets(prometheus::exponential_buckets(0.00005, 2.0, 20)?);
        let requests = Histogram::with_opts(opts)?;
        registry.register(Box::new(connections.clone()))?;
        registry.register(Box::new(handshakes.clone()))?;
        registry.register(Box::new(refused.clone()))?;
        registry.register(Box::new(statements.clone()))?;
        registry.register(Box::new(errors.clone()))?;
        registry.register(Box::new(retries.clone()))?;
        registry.register(Box::new(bindings.clone()))?;
        registry.register(Box::new(panics.clone()))?;
        registry.register(Box::new(requests.clone()))?;
        Ok(SqlMetrics {
            connections,
            handshakes,
            refused,
            statements: KINDS.iter().map(|kind| statements.with_label_values(&[kind])).collect(),
            errors: CLASSES.iter().map(|class| errors.with_label_values(&[class])).collect(),
            retries,
            bindings,
            panics,
            requests,
        })
    }

    /// A query was started, named as in errors.
    pub(crate) fn statement(&self, command: &str) {
        self.count(match command {
            "SELECT" | "VALUES" | "TABLE" | "WITH" => "select",
            "INSERT" => "insert",
            "UPDATE" => "update",
            "DELETE" => "delete",
            _ if ["CREATE", "DROP", "ALTER", "TRUNCATE"].iter().any(|verb| command.starts_with(verb)) => "schema",
            _ => "other",
        });
    }

    /// A session statement was carried out.
    pub(crate) fn command(&self, control: &Control) {
        self.count(match control {
            Control::Begin { .. } | Control::Commit { .. } | Control::Rollback { .. } => "transaction",
            Control::Set { .. } | Control::SetTransaction { .. } | Control::SetNothing(_) | Control::Reset(_) => {
                "setting"
            }
            Control::Show(_) => "setting",
            _ => "other",
        });
    }

    /// An error went to a client.
    pub(crate) fn error(&self, state: SqlState) {
        let class = CLASSES.iter().position(|class| *class == state.class()).unwrap_or(CLASSES.len() - 1);
        if let Some(counter) = self.errors.get(class) {
            counter.inc();
        }
    }

    /// A statement is run again after a conflict.
    pub(crate) fn retry(&self) {
        self.retries.inc();
    }

    /// A statement was bound.
    pub(crate) fn binding(&self) {
        self.bindings.inc();
    }

    /// A connection ended in a panic.
    pub(crate) fn panic(&self) {
        self.panics.inc();
    }

    /// A connection was refused for the number of them.
    pub(crate) fn refuse(&self) {
        self.refused.inc();
    }

    /// A request was answered.
    pub(crate) fn request(&self, seconds: f64) {
        self.requests.observe(seconds);
    }

    /// Counts a session for as long as the guard lives.
    pub(crate) fn connection(&self) -> Held {
        Held::new(&self.connections)
    }

    /// Counts a connection in its startup for as long as the guard lives.
    pub(crate) fn handshake(&self) -> Held {
        Held::new(&self.handshakes)
    }

    fn count(&self, kind: &str) {
        let kind = KINDS.iter().position(|k| *k == kind).unwrap_or(KINDS.len() - 1);
        if let Some(counter) = self.statements.get(kind) {
            counter.inc();
        }
    }
}

/// One more in a gauge while it lives.
#[derive(Debug)]
pub(crate) struct Held(IntGauge);

impl Held {
    fn new(gauge: &IntGauge) -> Held {
        gauge.inc();
        Held(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_errors_are_counted_by_kind_and_class() {
        let registry = Registry::new();
        let metrics = SqlMetrics::new(&registry).unwrap();
        assert!(SqlMetrics::new(&registry).is_err(), "names are registered once");
        metrics.statement("CREATE TABLE");
        metrics.statement("SELECT");
        metrics.error(SqlState::SERIALIZATION_FAILURE);
        metrics.error(SqlState("99999"));
        let held = metrics.connection();
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for line in [
            "sql_statements_total{kind=\"schema\"} 1",
            "sql_statements_total{kind=\"select\"} 1",
            "sql_errors_total{class=\"40\"} 1",
            "sql_errors_total{class=\"other\"} 1",
            "sql_connections 1",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        drop(held);
        assert_eq!(metrics.connections.get(), 0);
    }
}
