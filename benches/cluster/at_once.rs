//! Sends many requests over a few connections.

use crate::Outcome;
use futures::stream::{self, StreamExt, TryStreamExt};

/// Limit of concurrent requests. More connections would mostly measure TLS handshakes.
pub const AT_ONCE: usize = 32;

/// Runs the requests, at most [`AT_ONCE`] at a time, until all are answered or one fails. The first answer is the first result.
pub async fn at_once<T, F>(requests: impl IntoIterator<Item = F>) -> Outcome<Vec<T>>
where
    F: Future<Output = Outcome<T>>,
{
    stream::iter(requests)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}
