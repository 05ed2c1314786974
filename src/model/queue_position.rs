//! How many claims are served before a waiting claim, in words.

use crate::api::conditions::time_of_day;
use jiff::Timestamp;

/// What separates the position from the message before it.
const MARK: &str = "; the claim ";
const FIRST: &str = "was first in line";
const LATER: &str = "had ";

/// How many claims a pool served before a waiting claim, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePosition {
    /// Claims before it in the order of service.
    pub ahead: usize,
    /// The moment.
    pub at: Timestamp,
}

impl QueuePosition {
    /// The position as it is now.
    pub fn present(&self) -> String {
        match self.ahead {
            0 => "the claim is first in line".to_string(),
            1 => "1 claim is ahead".to_string(),
            ahead => format!("{ahead} claims are ahead"),
        }
    }

    /// `message` with the position as it was at its moment. The queue moves and a stored message stays, so the sentence
    /// is in the past tense and names the time: it stays true.
    pub fn append_to(&self, message: &str) -> String {
        let at = time_of_day(self.at);
        match self.ahead {
            0 => format!("{message}{MARK}{FIRST} at {at}"),
            1 => format!("{message}{MARK}{LATER}1 claim ahead at {at}"),
            ahead => format!("{message}{MARK}{LATER}{ahead} claims ahead at {at}"),
        }
    }
}

/// A stored message without the position that [`QueuePosition::append_to`] added to it.
pub fn without_position(message: &str) -> &str {
    match message.rsplit_once(MARK) {
        Some((before, position)) if position.starts_with(FIRST) || position.starts_with(LATER) => before,
        _ => message,
    }
}
