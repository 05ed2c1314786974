//! The operator's own index, planner, controllers and requests, against a model of the API server in which everything that can go wrong
//! does: every order of events, lost answers, crashes and other operators. Small worlds are searched through; larger
//! ones are walked at random.

// A test may panic: that is how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod action;
mod api_server;
mod bounds;
mod claims;
mod given;
mod goal;
mod key;
mod laws;
mod object;
mod operator;
mod outside;
mod request;
mod scene;
mod scenes;
mod search;
mod send;
mod sizes;
mod state;
mod story;
mod suites;
mod walk;
mod worlds;

// A third of a search's time goes into the allocator of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
