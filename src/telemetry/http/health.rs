//! Serves `/livez` and `/readyz` in the format of kube-apiserver.

use crate::cache::synced_cache::SharedCache;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;

/// The name of a check and its error.
type Check = (&'static str, Result<(), String>);

/// The check that the process answers.
const PING: Check = ("ping", Ok(()));

/// The routes of both endpoints.
pub fn routes(shared: SharedCache) -> Router {
    Router::new()
        .route("/livez", get(async |query| answer("livez", &[PING], query)))
        .route("/readyz", get(ready))
        .with_state(shared)
}

/// Ready when every watch has delivered its list. A standby becomes ready as well.
async fn ready(State(shared): State<SharedCache>, query: RawQuery) -> (StatusCode, String) {
    answer("readyz", &[PING, ("watches", watches(&shared))], query)
}

fn watches(shared: &SharedCache) -> Result<(), String> {
    if shared.synced() {
        return Ok(());
    }
    let incomplete = shared
        .watches
        .now()
        .into_iter()
        .filter(|(_, watch)| !watch.complete);
    let incomplete: Vec<_> = incomplete
        .map(|(kind, watch)| match watch.error {
            Some(error) => format!("{kind}: {error}"),
            None => format!("{kind}: no list yet"),
        })
        .collect();
    Err(incomplete.join("; "))
}

/// 200 when every check holds, else 500; with `?verbose` or a failure, a line for each.
fn answer(endpoint: &str, checks: &[Check], RawQuery(query): RawQuery) -> (StatusCode, String) {
    let well = checks.iter().all(|(_, outcome)| outcome.is_ok());
    let verbose = query.is_some_and(|query| query.split('&').any(|word| word.starts_with("verbose")));
    if well && !verbose {
        return (StatusCode::OK, "ok".to_string());
    }
    let lines = checks.iter().map(|(name, outcome)| match outcome {
        Ok(()) => format!("[+]{name} ok\n"),
        Err(error) => format!("[-]{name} failed: {error}\n"),
    });
    let lines: String = lines.collect();
    let (code, result) = if well {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "failed")
    };
    (code, format!("{lines}{endpoint} check {result}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(holds: bool, query: &str) -> (StatusCode, String) {
        let error = || Err("Pool: connection refused".to_string());
        let watches = if holds { Ok(()) } else { error() };
        let query = RawQuery(Some(query.to_string()));
        answer("readyz", &[PING, ("watches", watches)], query)
    }

    #[test]
    fn a_failure_is_reported_with_every_check() {
        let (code, text) = ask(false, "");
        assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(
            text,
            "[+]ping ok\n[-]watches failed: Pool: connection refused\nreadyz check failed\n"
        );
    }

    #[test]
    fn success_is_one_word_unless_more_is_asked_for() {
        assert_eq!(ask(true, ""), (StatusCode::OK, "ok".to_string()));
        let (code, text) = ask(true, "verbose");
        assert_eq!(code, StatusCode::OK);
        assert_eq!(text, "[+]ping ok\n[+]watches ok\nreadyz check passed\n");
    }
}
