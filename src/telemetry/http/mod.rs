//! Serves `/metrics` to Prometheus, `/livez` and `/readyz` to the kubelet.

pub mod exposition;
pub mod pool_gauges;
mod process_metrics;
pub mod readiness;

use axum::Router;
use std::future::IntoFuture;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use thiserror::Error;
use tokio::net::TcpListener;

/// The address that serves nothing.
const NOWHERE: &str = "0";

/// An address cannot be served.
#[derive(Debug, Error)]
#[error(
    "--{flag}={address} cannot be served: {source}; write another address, as in 127.0.0.1:8080 or :8080, or 0 to serve none"
)]
pub struct ServeError {
    /// The flag.
    flag: &'static str,
    /// Its value.
    address: String,
    /// The cause.
    source: std::io::Error,
}

/// Serves `routes` at the address that `flag` holds, from now until the runtime ends. A port without a host is
/// served on every address of the machine, 0 nowhere.
///
/// # Errors
/// When the address is invalid, in use or not of this machine.
pub async fn serve(flag: &'static str, address: &str, routes: Router) -> Result<(), ServeError> {
    if address == NOWHERE {
        return Ok(());
    }
    let listener = listen(address).await.map_err(|source| ServeError {
        flag,
        address: address.to_string(),
        source,
    })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "serving --{flag}");
    }
    tokio::spawn(axum::serve(listener, routes).into_future());
    Ok(())
}

async fn listen(address: &str) -> std::io::Result<TcpListener> {
    match address.strip_prefix(':').and_then(|port| port.parse().ok()) {
        // Where IPv6 exists, the first address accepts IPv4 as well.
        Some(port) => {
            let everywhere: [SocketAddr; 2] = [
                (Ipv6Addr::UNSPECIFIED, port).into(),
                (Ipv4Addr::UNSPECIFIED, port).into(),
            ];
            TcpListener::bind(&everywhere[..]).await
        }
        None => TcpListener::bind(address).await,
    }
}
