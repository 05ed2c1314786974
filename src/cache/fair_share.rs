//! How many slots of a limit one flow of requests may hold while others want some.
//!
//! A flow may hold four times what is free (dynamic thresholds: Choudhury and Hahne, "Dynamic Queue Length Thresholds
//! for Shared-Memory Packet Switches", 1998). A lone flow gets four fifths of the limit. Of several, each gets as much
//! as the others, and a slot stays free for a flow that has none. So requests that are answered slowly delay their own
//! flow alone.

/// Slots that a flow may hold for each that is free.
const PER_FREE_SLOT: usize = 4;

/// The limit at which a lone flow may hold `slots`.
pub(crate) const fn limit(slots: usize) -> usize {
    slots + slots / PER_FREE_SLOT
}

/// Whether a flow that holds `own` of the `all` slots that are held may take one more.
pub(crate) fn may_take(own: usize, all: usize, limit: usize) -> bool {
    own < PER_FREE_SLOT * limit.saturating_sub(all)
}
