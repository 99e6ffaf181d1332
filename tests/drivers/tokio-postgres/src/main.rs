//! tokio-postgres: all sections of the driver tests, on the server of PGHOST, PGPORT, PGUSER and PGDATABASE.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod catalog;
mod connect;
mod copy;
mod sections;
mod statements;
mod transactions;
mod types;

/// The version that `Cargo.lock` pins.
const LOCK: &str = include_str!("../../../../Cargo.lock");

#[tokio::main]
async fn main() {
    let after = LOCK.split_once("name = \"tokio-postgres\"\nversion = \"").expect("the driver").1;
    println!("version {}", after.split('"').next().unwrap_or_default());
    let mut failed = false;
    failed |= sections::failed("connect", connect::connect()).await;
    failed |= sections::failed("types_text", types::text()).await;
    failed |= sections::failed("types_binary", types::binary()).await;
    failed |= sections::failed("prepared", statements::prepared()).await;
    failed |= sections::failed("batch", statements::batch()).await;
    failed |= sections::failed("transactions", transactions::transactions()).await;
    failed |= sections::failed("errors", transactions::errors()).await;
    failed |= sections::failed("cancel", transactions::cancel()).await;
    failed |= sections::failed("copy", copy::copy()).await;
    failed |= sections::failed("cursors", statements::cursors()).await;
    failed |= sections::failed("catalog", catalog::catalog()).await;
    std::process::exit(i32::from(failed));
}
