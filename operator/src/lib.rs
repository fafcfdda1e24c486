//! `backup-operator` as a library for its binary and its tests.
//!
//! observe → [`engine::plan`] (pure) → apply. Only `apply`, `observe` and the watches of
//! [`controller`] touch the network; the clock is read once a reconcile.

pub mod admin;
pub mod answers;
mod apply;
pub mod args;
pub mod backup;
pub mod context;
pub mod controller;
mod digest;
pub mod engine;
mod event;
#[cfg(test)]
mod fake_api;
mod guard;
mod job;
pub mod kind;
pub mod lease;
pub mod metrics;
pub mod mysql_backup;
mod observe;
mod ownership;
pub mod policy;
pub mod restore;
pub mod run;
mod serving;
pub mod telemetry;
pub mod webhook;
