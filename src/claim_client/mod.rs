//! Claims sandboxes from a Rust program, and gives them back.
//!
//! [`Claim::from_pool`] begins a claim and [`ClaimRequest::bind`] waits until its sandboxes are Ready:
//!
//! ```
//! use std::time::Duration;
//! use warmpool::claim_client::{Claim, ClaimError};
//!
//! async fn run(client: kube::Client) -> Result<(), ClaimError> {
//!     let claim = Claim::from_pool("python")
//!         .lifetime(Duration::from_secs(600))
//!         .bind(client)
//!         .await?;
//!     println!("{} at {}", claim.sandbox().name, claim.sandbox().ip);
//!     claim.release().await
//! }
//! # // The same against a stand-in for the API server that binds at once.
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #     let server = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
//! #         let claim = serde_json::json!({
//! #             "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaim",
//! #             "metadata": {"name": "python-1", "uid": "1", "resourceVersion": "2"},
//! #             "spec": {"poolRef": {"name": "python"}},
//! #             "status": {"phase": "Bound",
//! #                 "conditions": [{"type": "Ready", "status": "True", "reason": "SandboxReady", "message": "",
//! #                     "lastTransitionTime": "2026-01-31T12:00:00Z"}],
//! #                 "sandboxes": [{"name": "python-a-b", "uid": "2", "ip": "10.0.0.2", "boundTime": "2026-01-31T12:00:00Z"}]},
//! #         });
//! #         let list = serde_json::json!({
//! #             "apiVersion": "warmpool.dev/v1alpha1", "kind": "SandboxClaimList",
//! #             "metadata": {"resourceVersion": "2"}, "items": [claim],
//! #         });
//! #         let answer = if request.method() == http::Method::GET { list } else { claim };
//! #         let body = kube::client::Body::from(answer.to_string().into_bytes());
//! #         Ok::<_, std::convert::Infallible>(http::Response::new(body))
//! #     });
//! #     let session = async { run(kube::Client::new(server, "default")).await };
//! #     tokio::runtime::Runtime::new()?.block_on(session)?;
//! #     Ok(())
//! # }
//! ```
//!
//! A claim does not outlive its owner. [`Claim::release`] deletes it, and Kubernetes deletes its sandboxes. A [`Claim`]
//! that is dropped is deleted in the background, and so is the claim of a [`ClaimRequest::bind`] that fails or is
//! dropped before its end, even while the creation is on its way:
//!
//! ```
//! # use std::time::Duration;
//! # use warmpool::claim_client::Claim;
//! # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let bind = Claim::from_pool("python").bind(client);
//! let claim = tokio::time::timeout(Duration::from_secs(5), bind).await??;
//! # Ok(())
//! # }
//! ```
//!
//! The deletion in the background runs on the tokio runtime that bound the claim, and the end of the runtime cuts it off.
//! [`wait_for_releases`] at the end of a program waits for it, also after an error or ^C:
//!
//! ```
//! # use warmpool::claim_client::wait_for_releases;
//! # async fn run() -> Result<(), std::io::Error> { Ok(()) }
//! # async fn program() -> Result<(), std::io::Error> {
//! let outcome = tokio::select! {
//!     outcome = run() => outcome,
//!     interrupted = tokio::signal::ctrl_c() => interrupted,
//! };
//! wait_for_releases().await;
//! outcome
//! # }
//! ```
//!
//! A process that is killed deletes nothing: [`ClaimRequest::lifetime`] bounds how long its sandboxes stay.

mod background;
mod claim;
mod held_claim;
mod request;
mod wait;

pub use background::wait_for_releases;
pub use claim::Claim;
pub use request::ClaimRequest;
pub use wait::ClaimError;
