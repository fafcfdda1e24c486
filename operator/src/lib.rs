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
pub mod engine;
mod event;
mod guard;
pub mod lease;
pub mod metrics;
pub mod mysql_backup;
mod observe;
mod ownership;
mod pods;
pub mod policy;
pub mod restore;
pub mod run;
mod serving;
pub mod telemetry;
pub mod webhook;
