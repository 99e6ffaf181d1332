//! Metrics and health over HTTP, for Prometheus and load balancers.
//!
//! `/metrics` is in Prometheus' text format. `/healthz` answers 200 while the node serves SQL, and 503 with the reason
//! otherwise.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use parking_lot::RwLock;
use prometheus::{Registry, TextEncoder};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Whether the node serves, or the reason why not. The node sets it and the health page shows it; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    reason: Arc<RwLock<Option<String>>>,
}

impl Health {
    /// The state of a starting node.
    pub(crate) fn starting() -> Health {
        Health { reason: Arc::new(RwLock::new(Some("starting".to_string()))) }
    }

    /// Marks the node as serving.
    pub(crate) fn serving(&self) {
        *self.reason.write() = None;
    }

    /// Marks the node as not serving.
    pub(crate) fn not_serving(&self, reason: impl Into<String>) {
        *self.reason.write() = Some(reason.into());
    }

    /// The reason why the node does not serve; `None` while it serves.
    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.read().clone()
    }
}

#[derive(Clone)]
struct Pages {
    registry: Registry,
    health: Health,
}

/// Serves both pages until `stop` is cancelled.
pub(crate) async fn serve(listener: TcpListener, registry: Registry, health: Health, stop: CancellationToken) {
    let pages = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .with_state(Pages { registry, health });
    let served = axum::serve(listener, pages).with_graceful_shutdown(stop.cancelled_owned()).await;
    if let Err(error) = served {
        tracing::error!(%error, "the HTTP server stopped");
    }
}

async fn metrics(State(pages): State<Pages>) -> Response {
    match TextEncoder::new().encode_to_string(&pages.registry.gather()) {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn healthz(State(pages): State<Pages>) -> (StatusCode, String) {
    match pages.health.reason() {
        None => (StatusCode::OK, "ok\n".to_string()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}
