//! Fits text to the width of the terminal. In a pipe it stays as it is.

use rustix::termios::tcgetwinsize;
use std::io::IsTerminal;

/// Narrowest width to which text is fitted.
const NARROWEST: usize = 20;
/// What begins the lines after the first.
const INDENT: &str = "  ";

/// The width of the terminal that standard output is; `None`: it is none.
pub(super) fn width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let columns = usize::from(tcgetwinsize(&out).ok()?.ws_col);
    (columns > 0).then(|| columns.max(NARROWEST))
}

/// `line` in lines of at most `width` characters, where words allow it. Those after the first are indented.
pub fn wrapped(line: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return line.to_string();
    };
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let Some(last) = lines.last_mut() else { continue };
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() > width {
            lines.push(format!("{INDENT}{word}"));
        } else {
            last.push(' ');
            last.push_str(word);
        }
    }
    lines.join("\n")
}
