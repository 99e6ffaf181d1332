//! The client: its region cache by golden scripts, and the whole of it over an in-memory cluster and over gRPC.

mod cluster;
mod region_cache;
mod remote;
