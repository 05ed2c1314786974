//! `kubectl warmpool release`: deletes claims, and with each its sandboxes.

use crate::api;
use crate::cli::kubectl::claim_argument::ClaimName;
use crate::cli::kubectl::cluster::Cluster;
use crate::cli::kubectl::connection::Connection;
use crate::cli::kubectl::print::{self, NameOnly};
use crate::cli::kubectl::selection::note_none;
use crate::cli::kubectl::verb_error::VerbError;
use crate::cli::runtime::block_on;
use crate::model::Key;
use kube::Api;
use kube::api::DeleteParams;
use kube::core::{ApiResource, DynamicObject};
use std::process::ExitCode;

/// Arguments of `kubectl warmpool release`.
#[derive(clap::Args)]
#[command(after_help = "\
Exit code 0: every claim is deleted. Exit code 1: one is not; the others are. Exit code 2: the arguments are wrong.

Examples:
  kubectl warmpool release run-42
  kubectl warmpool release run-42 run-43
  kubectl warmpool release -l team=red
  kubectl warmpool release -A -l team=red -o name")]
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
    /// Release the claims with these labels in all namespaces, whatever -n says
    #[arg(short = 'A', long, requires = "selector", conflicts_with = "claims")]
    all_namespaces: bool,
    /// Print kind and name of each claim [default: a line that says that it is deleted]
    #[arg(short, long, value_enum)]
    output: Option<NameOnly>,
}

/// Runs the verb.
pub(super) fn run(connection: &Connection, arguments: &Arguments) -> Result<ExitCode, VerbError> {
    block_on(async {
        let cluster = Cluster::open(connection).await?;
        let named = |claim: &ClaimName| Key::new(cluster.namespace.as_str(), &claim.0);
        let mut claims: Vec<Key> = arguments.claims.iter().map(named).collect();
        if let Some(selector) = &arguments.selector {
            let namespace = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
            claims = cluster
                .named_with::<api::SandboxClaim>(namespace, selector)
                .await?;
            if claims.is_empty() {
                note_none("claims", namespace);
            }
        }
        let kind = ApiResource::erase::<api::SandboxClaim>(&());
        let mut code = ExitCode::SUCCESS;
        for Key { namespace, name } in claims {
            let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &namespace, &kind);
            match cluster.ask(api.delete(&name, &DeleteParams::default())).await {
                Ok(_) => print::out(&match arguments.output {
                    Some(NameOnly::Name) => print::claim_title(&name) + "\n",
                    None => format!("sandboxclaim.warmpool.dev {name:?} deleted\n"),
                })?,
                Err(error) => {
                    print::error(&error.to_string());
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    })?
}
