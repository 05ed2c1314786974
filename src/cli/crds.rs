//! `warmpool crds`

use crate::api::crd;
use clap::Args;
use std::io::Write as _;
use std::path::PathBuf;
use thiserror::Error;

/// Arguments of `warmpool crds`.
#[derive(Args)]
pub struct Arguments {
    /// Write one file per kind into this folder instead of printing them all
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
}

/// Why the CRDs could not be printed.
#[derive(Debug, Error)]
pub enum CrdsError {
    /// A generated schema does not fit the CRD type.
    #[error("the schemas could not be generated: {0}")]
    Generate(#[from] serde_json::Error),
    /// They could not be written as YAML.
    #[error("the schemas could not be written as YAML: {0}")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// Nobody takes what is printed.
    #[error("the CRDs could not be printed: {0}")]
    Print(#[source] std::io::Error),
    /// A file could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Prints the CRDs as YAML documents, or writes one file per kind.
///
/// # Errors
/// As [`CrdsError`] says.
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
