//! `kubectl warmpool release`: deletes claims, and with each its sandboxes.

use crate::api;
use crate::cli::kubectl::claim_name::ClaimName;
use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::pool;
use crate::cli::kubectl::print;
use crate::cli::kubectl::verb_error::VerbError;
use crate::cli::runtime::block_on;
use kube::api::{DeleteParams, ListParams};
use std::process::ExitCode;

/// Arguments of `kubectl warmpool release`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0: every claim is deleted. Exit code 1: one is not; the others are. Exit code 2: the arguments are wrong.

Examples:
  kubectl warmpool release run-42
  kubectl warmpool release run-42 run-43
  kubectl warmpool release -l team=red")]
pub(super) struct Arguments {
    /// The claims: NAME or claim/NAME
    #[arg(
        value_name = "CLAIM",
        required_unless_present = "selector",
        conflicts_with = "selector"
    )]
    claims: Vec<ClaimName>,
    /// Release every claim with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<ExitCode, VerbError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let claims = cluster.objects::<api::SandboxClaim>();
        let mut names: Vec<String> = arguments.claims.iter().map(|claim| claim.0.clone()).collect();
        if let Some(selector) = &arguments.selector {
            let parameters = ListParams::default().labels(selector);
            let listed = cluster.ask(claims.list(&parameters)).await?;
            names.extend(listed.items.iter().map(|claim| pool::name(claim).to_string()));
            if names.is_empty() {
                print::note(&format!(
                    "No claims found in namespace {} with these labels.",
                    cluster.namespace
                ));
            }
        }
        let mut code = ExitCode::SUCCESS;
        for name in names {
            match cluster.ask(claims.delete(&name, &DeleteParams::default())).await {
                Ok(_) => print::out(&format!("sandboxclaim.warmpool.dev {name:?} deleted\n"))?,
                Err(error) => {
                    print::error(&error.to_string());
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    })?
}
