//! Formats an error with all its sources in one line.

use kube::core::Status;
use kube::runtime::watcher;
use std::error::Error;

/// An error with all its sources, separated by colons. A source that the text already quotes is left out. Of an answer
/// of the API server, its code and message.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    if let Some(status) = status_in(error) {
        let message = match status.message.as_str() {
            "" => &status.reason,
            message => message,
        };
        return format!("{} {message}", status.code);
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The status in the API server's answer, if there was an answer. kube-rs prints such a status as Rust's `Debug` does.
pub fn status_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(watcher::Error::WatchError(status)) = error.downcast_ref() {
            return Some(status);
        }
        if let Some(kube::Error::Api(status)) = error.downcast_ref() {
            return Some(status);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_the_api_server_is_its_code_and_message_wherever_it_comes_from() {
        let status = Box::new(Status {
            code: 410,
            message: "too old resource version: 1 (2)".into(),
            reason: "Expired".into(),
            ..Status::default()
        });
        let expected = "410 too old resource version: 1 (2)";
        let from_watch = watcher::Error::WatchError(status.clone());
        let from_list = watcher::Error::InitialListFailed(kube::Error::Api(status.clone()));
        assert_eq!(chain(&from_watch), expected);
        assert_eq!(chain(&from_list), expected);
        assert_eq!(chain(&kube::Error::Api(status)), expected);
        let silent = Box::new(Status {
            code: 500,
            reason: "InternalError".into(),
            ..Status::default()
        });
        assert_eq!(chain(&kube::Error::Api(silent)), "500 InternalError");
    }
}
