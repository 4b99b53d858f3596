//! The binary `prestage` from outside: arguments in; files, lines and exit statuses out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod command;

mod circuits;
mod compare;
mod demo;
mod devices;
mod doctor;
mod interrupt;
mod kernels;
mod keys;
mod kill;
mod manifest;
mod outputs;
mod scenarios;
mod session;
mod usage;
mod witness;
