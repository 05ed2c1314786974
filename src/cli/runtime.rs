//! Starts the asynchronous runtime of a verb.

/// Runs `future` to its end, on this thread: an answer passes from the connection to its request, its plan and the next request
/// without waking another thread, which would cost as much as the plan. Does not wait for tasks that are still running then, such as a DNS lookup.
///
/// # Errors
/// The runtime could not be started.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, std::io::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(future);
    runtime.shutdown_background();
    Ok(outcome)
}
