//! Writes tables of figures into a document.

use crate::Outcome;
use std::fs;
use std::path::Path;

/// Replaces what stands between the comments `NAME` and `end of NAME` of the document.
pub fn write_table(document: &Path, name: &str, table: &str) -> Outcome<()> {
    let text = fs::read_to_string(document)?;
    let (begin, end) = (format!("<!-- {name} -->"), format!("<!-- end of {name} -->"));
    let place = || format!("{} has no place for {name}", document.display());
    let (before, rest) = text.split_once(&begin).ok_or_else(place)?;
    let (_, after) = rest.split_once(&end).ok_or_else(place)?;
    fs::write(document, format!("{before}{begin}\n\n{table}\n{end}{after}"))?;
    println!("{name} written into {}", document.display());
    Ok(())
}
