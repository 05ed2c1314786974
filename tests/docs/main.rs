//! Checks README and docs: links, commands, and the pages that are made from the code.
//!
//! `make reference` writes the pages of docs/reference.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

mod blocks;
mod commands;
mod links;
mod pages;
mod reference;
