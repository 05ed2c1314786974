//! What the planner promises, checked without a cluster: tables for each phase, and laws over random worlds.

mod claims;
mod laws;
mod phases;
mod revisions;
mod world;
