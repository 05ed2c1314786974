//! Starts the asynchronous runtime of a verb.

/// Runs `future` to its end on this thread, because waking another thread for each answer would cost as much as a plan.
/// Does not wait for tasks that still run then, such as a DNS lookup.
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
