//! The client: its region cache by golden scripts, and the whole of it over an in-memory cluster and over links.

mod busy;
mod cluster;
mod fake;
mod hedges;
mod region_cache;
mod remote;
mod replicas;
mod responses;

use prometheus::Registry;

/// The value of a counter without labels.
fn counter(registry: &Registry, name: &str) -> u64 {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == name).expect("registered");
    family.get_metric()[0].get_counter().get_value() as u64
}
