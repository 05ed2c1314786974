//! Finds the pages: every Markdown file that users read.

use std::fs;
use std::path::{Path, PathBuf};

/// A Markdown file.
pub struct Page {
    /// Relative to the repository.
    pub path: PathBuf,
    pub text: String,
}

pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files at the top, in docs and of the chart and the examples.
pub fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    collect(&repository().join("docs"), &mut found);
    for folder in ["", "charts/warmpool", "examples", "e2e/cluster", "e2e/node"] {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        let files = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file());
        found.extend(files.filter(|path| is_markdown(path)));
    }
    found.sort();
    let pages: Vec<Page> = found
        .into_iter()
        .map(|path| Page {
            text: fs::read_to_string(&path).unwrap(),
            path: path.strip_prefix(repository()).unwrap().to_path_buf(),
        })
        .collect();
    assert!(pages.len() > 15, "only {} pages were found", pages.len());
    pages
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if is_markdown(&path) {
            found.push(path);
        }
    }
}

/// Whether each line of a text is outside code blocks, fenced ones.
pub fn outside_fences(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let mark = line.trim_start().starts_with("```");
        fenced ^= mark;
        !fenced && !mark
    })
}
