//! `warmpool crds`: prints the CustomResourceDefinitions, or writes them to files.

use crate::api::crd;
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;
use thiserror::Error;

/// Arguments of `warmpool crds`.
#[derive(Args)]
pub struct Arguments {
    /// Write one file per kind into this directory [default: print all kinds]
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

/// The CRDs were not printed or written.
#[derive(Debug, Error)]
pub enum CrdsError {
    /// A generated schema is not a valid CRD.
    #[error("cannot generate the CRDs: {0}")]
    Generate(#[from] serde_json::Error),
    /// A CRD has no YAML form.
    #[error("cannot write the CRDs as YAML: {0}")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// Standard output is closed or full.
    #[error("cannot print the CRDs: {0}")]
    Print(#[source] std::io::Error),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

/// Prints the CRDs as YAML documents, or writes one file per kind.
///
/// # Errors
/// See [`CrdsError`].
pub fn run(arguments: &Arguments) -> Result<(), CrdsError> {
    for (name, crd) in crd::all()? {
        let yaml = serde_yaml_ng::to_string(&crd)?;
        match &arguments.out_dir {
            None => write!(std::io::stdout(), "---\n{yaml}").map_err(CrdsError::Print)?,
            Some(folder) => {
                let path = folder.join(name);
                std::fs::write(&path, yaml).map_err(|source| CrdsError::Write { path, source })?;
            }
        }
    }
    Ok(())
}
