//! Tables as kubectl prints them.

use std::io::Write as _;
use tabwriter::TabWriter;

/// Blanks between two columns.
const PADDING: usize = 3;

/// What a cell without a value holds, as in kubectl.
pub(super) const NONE: &str = "<none>";

/// A table in the making.
pub(crate) struct Table(TabWriter<Vec<u8>>);

impl Table {
    /// A table with these titles.
    pub(crate) fn new<'a>(titles: impl Iterator<Item = &'a str>) -> Self {
        let mut table = Self(TabWriter::new(Vec::new()).padding(PADDING));
        table.row(titles.map(str::to_string));
        table
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl Iterator<Item = String>) {
        let cells: Vec<_> = cells.collect();
        // Writing to a Vec cannot fail.
        _ = writeln!(self.0, "{}", cells.join("\t"));
    }

    /// The lines, without blanks at their ends.
    pub(crate) fn lines(self) -> Vec<String> {
        let bytes = self.0.into_inner().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.lines().map(|line| line.trim_end().to_string()).collect()
    }
}
