//! Takes sandboxes from a pool and gives them back: one sandbox, one that does not come in time, and a batch.
//!
//!     cargo run --example claim -- --pool python

use clap::Parser;
use kube::Client;
use std::error::Error;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use warmpool::claim_client::{Claim, wait_for_releases};

#[derive(Parser)]
struct Arguments {
    /// Namespace of the pool
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Pool to claim from
    #[arg(long, default_value = "python")]
    pool: String,
    /// How many seconds to wait for a claim
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// Sandboxes in the batch
    #[arg(long, default_value_t = 3)]
    batch: i32,
}

/// The end of a claim whose program died: without it the sandbox would stay.
const LIFETIME: Duration = Duration::from_secs(600);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut terminated = signal(SignalKind::terminate())?;
    let outcome = tokio::select! {
        outcome = claim_and_release(arguments) => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        _ = terminated.recv() => Err("terminated".into()),
    };
    // Whatever was dropped on the way is deleted in the background, which the end of the program would cut off.
    wait_for_releases().await;
    outcome
}

async fn claim_and_release(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let client = Client::try_default().await?;
    let timeout = Duration::from_secs(arguments.timeout);

    let bind = Claim::from_pool(&arguments.pool)
        .in_namespace(&arguments.namespace)
        .lifetime(LIFETIME)
        .bind(client.clone());
    let claim = tokio::time::timeout(timeout, bind).await??;
    let sandbox = claim.sandbox();
    println!(
        "one: {} has {} at {} after {:?}",
        claim.name(),
        sandbox.name,
        sandbox.ip,
        claim.waited()
    );
    claim.release().await?;

    // A pool that does not exist. The future is dropped after a second, and the claim is deleted in the background.
    let missing = format!("{}-missing", arguments.pool);
    let bind = Claim::from_pool(&missing)
        .in_namespace(&arguments.namespace)
        .lifetime(LIFETIME)
        .bind(client.clone());
    match tokio::time::timeout(Duration::from_secs(1), bind).await {
        Ok(outcome) => return Err(format!("a claim on a missing pool ended with {outcome:?}").into()),
        Err(elapsed) => println!("timeout: {elapsed}"),
    }

    let bind = Claim::from_pool(&arguments.pool)
        .in_namespace(&arguments.namespace)
        .replicas(arguments.batch)
        .lifetime(LIFETIME)
        .bind(client);
    let batch = tokio::time::timeout(timeout, bind).await??;
    for sandbox in batch.sandboxes() {
        println!("batch: {} has {} at {}", batch.name(), sandbox.name, sandbox.ip);
    }
    batch.release().await?;
    Ok(())
}
