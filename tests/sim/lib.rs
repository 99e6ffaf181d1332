//! The package `stack` consists of one test, `main.rs`: the simulation of the whole stack. See `README.md`.
