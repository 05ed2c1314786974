//! The schemas of the documents that verbs print with `-o json` and `-o yaml`.

use crate::cli::kubectl::drain::report::Report as DrainReport;
use crate::cli::kubectl::pool_report::StatusReport;
use crate::cli::kubectl::size::SizeReport;
use crate::cli::kubectl::top::TopReport;
use crate::cli::plan::Report as PlanReport;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// Each verb that prints a document of its own, and the schema of that document.
pub fn output_schemas() -> [(&'static str, Schema); 5] {
    [
        ("status", schema::<StatusReport>()),
        ("top", schema::<TopReport>()),
        ("plan", schema::<PlanReport>()),
        ("drain", schema::<DrainReport<'_>>()),
        ("size", schema::<SizeReport>()),
    ]
}

fn schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}
