//! Why warming sandboxes are not available, in words.

/// What follows the counts in a sentence, and precedes the reason.
const MARK: &str = " warming sandboxes: ";
/// What separates the sentence from the message before it.
const SEPARATOR: &str = "; ";
/// What precedes the detail.
const DETAIL: &str = " (";

/// The reason why some warming sandboxes of a pool are not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmingReason {
    /// Sandboxes with this reason.
    pub count: usize,
    /// Warming sandboxes of the pool.
    pub warming: usize,
    /// The reason, as in `container main: ImagePullBackOff`.
    pub reason: String,
    /// One of the sandboxes, by name.
    pub sandbox: String,
    /// More about it, of that sandbox; empty without any.
    pub detail: String,
}

impl WarmingReason {
    /// As in `3 of 10 warming sandboxes: container main: ImagePullBackOff`.
    pub fn summary(&self) -> String {
        format!("{} of {}{MARK}{}", self.count, self.warming, self.reason)
    }

    /// The summary with the detail.
    pub fn sentence(&self) -> String {
        match self.detail.as_str() {
            "" => self.summary(),
            detail => format!("{}{DETAIL}{detail})", self.summary()),
        }
    }
}

/// `message` with the sentence after it.
pub fn append(message: &str, sentence: Option<String>) -> String {
    match sentence {
        Some(sentence) => format!("{message}{SEPARATOR}{sentence}"),
        None => message.to_string(),
    }
}

/// The message before the sentence that [`append`] added to it, and the reason in that sentence.
pub fn split(message: &str) -> (&str, Option<&str>) {
    let Some((before, after)) = message.split_once(MARK) else {
        return (message, None);
    };
    let head = before.rsplit_once(SEPARATOR).map_or("", |(head, _)| head);
    let reason = after.split_once(DETAIL).map_or(after, |(reason, _)| reason);
    (head, Some(reason))
}

/// The message up to the detail in its sentence.
pub fn without_detail(message: &str) -> &str {
    let Some(start) = message.find(MARK) else {
        return message;
    };
    let after = message.get(start..).unwrap_or_default();
    let detail = after.find(DETAIL).map_or(message.len(), |at| start + at);
    message.get(..detail).unwrap_or_default()
}

/// The sentence in `message`, from its counts to its end.
pub fn sentence_in(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(MARK)?;
    let start = before.rfind(SEPARATOR).map_or(0, |at| at + SEPARATOR.len());
    message.get(start..)
}

/// Whether `message` is no news to a reader of `said`: it differs in the counts at most, or no longer names a reason
/// that `said` names. Sandboxes come and go many times while the reason stays.
pub fn is_no_news(message: &str, said: &str) -> bool {
    let ((head, reason), (said_head, said_reason)) = (split(message), split(said));
    head == said_head && (reason.is_none() || reason == said_reason)
}
