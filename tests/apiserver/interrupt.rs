//! Ends the control plane when the run is interrupted.

use crate::cluster::repository;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGINT or SIGTERM, calls `close`, and ends the process.
pub async fn close_on_signal(close: fn()) {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    eprintln!(
        "interrupted in {}; ending the control plane",
        repository().display()
    );
    _ = tokio::task::spawn_blocking(close).await;
    std::process::exit(130);
}
