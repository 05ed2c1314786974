//! `warmpool crds`: prints the CustomResourceDefinitions, or writes them to files.

use crate::api::crd;
use clap::Args;
use serde_json::Value;
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
        let mut document = serde_json::to_value(crd)?;
        write_whole_numbers_as_integers(&mut document);
        let yaml = serde_yaml_ng::to_string(&document)?;
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

/// `2147483647` instead of `2147483647.0`, as the API server and Helm write it. The type of a limit is a float.
fn write_whole_numbers_as_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|float| number.is_f64() && float.fract() == 0.0);
            if let Some(integer) = whole.and_then(|float| format!("{float:.0}").parse::<i64>().ok()) {
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers_as_integers),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers_as_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
