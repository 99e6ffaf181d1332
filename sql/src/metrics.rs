//! Metrics of the front end.

use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use crate::error::SqlState;

/// The kind of a statement: the label `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    Select,
    Insert,
    Update,
    Delete,
    Schema,
    Transaction,
    Setting,
    Other,
}

impl StatementKind {
    const ALL: [StatementKind; 8] = [
        StatementKind::Select,
        StatementKind::Insert,
        StatementKind::Update,
        StatementKind::Delete,
        StatementKind::Schema,
        StatementKind::Transaction,
        StatementKind::Setting,
        StatementKind::Other,
    ];

    /// The kind of a bound statement, from its command name as errors print it.
    pub(crate) fn of_command(command: &str) -> StatementKind {
        match command {
            "SELECT" | "VALUES" | "TABLE" | "WITH" => StatementKind::Select,
            "INSERT" => StatementKind::Insert,
            "UPDATE" => StatementKind::Update,
            "DELETE" => StatementKind::Delete,
            _ if ["CREATE", "DROP", "ALTER", "TRUNCATE"].iter().any(|verb| command.starts_with(verb)) => {
                StatementKind::Schema
            }
            _ => StatementKind::Other,
        }
    }

    fn label(self) -> &'static str {
        match self {
            StatementKind::Select => "select",
            StatementKind::Insert => "insert",
            StatementKind::Update => "update",
            StatementKind::Delete => "delete",
            StatementKind::Schema => "schema",
            StatementKind::Transaction => "transaction",
            StatementKind::Setting => "setting",
            StatementKind::Other => "other",
        }
    }
}

/// SQLSTATE classes with a counter of their own: values of the label `class`. All others count as `other`.
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
    catalog_reads: IntCounter,
    lease_waits: IntCounter,
    panics: IntCounter,
    requests: Histogram,
}

impl SqlMetrics {
    /// Registers the metrics. Fails if one of their names is registered already.
    pub fn new(registry: &Registry) -> Result<SqlMetrics, prometheus::Error> {
        let connections = IntGauge::new("sql_connections", "Sessions that are open")?;
        let handshakes = IntGauge::new("sql_handshakes", "Connections that have not finished their startup")?;
        let refused = IntCounter::new("sql_connections_refused_total", "Connections refused for their number")?;
        let statements = IntCounterVec::new(Opts::new("sql_statements_total", "Statements executed"), &["kind"])?;
        let errors = IntCounterVec::new(Opts::new("sql_errors_total", "Errors sent to clients"), &["class"])?;
        let retries = IntCounter::new("sql_statement_retries_total", "Statements run again after a conflict")?;
        let bindings = IntCounter::new("sql_bindings_total", "Statements bound because no cached plan was valid")?;
        let catalog_reads = IntCounter::new("sql_catalog_reads_total", "Reads of the catalog's records in the store")?;
        let lease_waits = IntCounter::new("sql_lease_waits_total", "Statements that found the catalog's lease over")?;
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
        registry.register(Box::new(catalog_reads.clone()))?;
        registry.register(Box::new(lease_waits.clone()))?;
        registry.register(Box::new(panics.clone()))?;
        registry.register(Box::new(requests.clone()))?;
        Ok(SqlMetrics {
            connections,
            handshakes,
            refused,
            statements: StatementKind::ALL.iter().map(|kind| statements.with_label_values(&[kind.label()])).collect(),
            errors: CLASSES.iter().map(|class| errors.with_label_values(&[class])).collect(),
            retries,
            bindings,
            catalog_reads,
            lease_waits,
            panics,
            requests,
        })
    }

    /// Counts a started statement.
    pub(crate) fn statement(&self, kind: StatementKind) {
        if let Some(counter) = self.statements.get(kind as usize) {
            counter.inc();
        }
    }

    /// Counts an error sent to a client.
    pub(crate) fn error(&self, state: SqlState) {
        let class = CLASSES.iter().position(|class| *class == state.class()).unwrap_or(CLASSES.len() - 1);
        if let Some(counter) = self.errors.get(class) {
            counter.inc();
        }
    }

    /// Counts a retry of a statement after a conflict.
    pub(crate) fn retry(&self) {
        self.retries.inc();
    }

    /// Counts a binding.
    pub(crate) fn binding(&self) {
        self.bindings.inc();
    }

    /// Counts a read of catalog records.
    pub(crate) fn catalog_read(&self) {
        self.catalog_reads.inc();
    }

    /// Counts a statement that waits for the node's lease on the catalog.
    pub(crate) fn lease_wait(&self) {
        self.lease_waits.inc();
    }

    /// Counts a connection that ended in a panic.
    pub(crate) fn panic(&self) {
        self.panics.inc();
    }

    /// Counts a connection refused by the connection limit.
    pub(crate) fn connection_refused(&self) {
        self.refused.inc();
    }

    /// Records the duration of an answered request.
    pub(crate) fn request(&self, seconds: f64) {
        self.requests.observe(seconds);
    }

    /// Counts a session until the guard is dropped.
    pub(crate) fn connection(&self) -> GaugeGuard {
        GaugeGuard::new(&self.connections)
    }

    /// Counts a connection in its startup until the guard is dropped.
    pub(crate) fn handshake(&self) -> GaugeGuard {
        GaugeGuard::new(&self.handshakes)
    }
}

/// Increments a gauge; its drop decrements it.
#[derive(Debug)]
pub(crate) struct GaugeGuard(IntGauge);

impl GaugeGuard {
    fn new(gauge: &IntGauge) -> GaugeGuard {
        gauge.inc();
        GaugeGuard(gauge.clone())
    }
}

impl Drop for GaugeGuard {
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
        assert!(StatementKind::ALL.iter().enumerate().all(|(at, kind)| *kind as usize == at), "in declaration order");
        metrics.statement(StatementKind::of_command("CREATE TABLE"));
        metrics.statement(StatementKind::of_command("SELECT"));
        metrics.error(SqlState::SERIALIZATION_FAILURE);
        metrics.error(SqlState("99999"));
        let connection = metrics.connection();
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
        drop(connection);
        assert_eq!(metrics.connections.get(), 0);
    }
}
