//! What was seen when claims arrived.

use crate::model::demand::histogram::Histogram;
use crate::model::demand::recent_needs::RecentNeeds;
use crate::model::demand::recent_rate::RecentRate;
use crate::model::demand::sliding_window::SlidingWindow;
use jiff::Timestamp;

/// The arrivals of claims, and what they called for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// Sandboxes that were requested within the last warm-up time.
    pub recent: SlidingWindow,
    /// How many were requested within a warm-up time, as seen at each arrival.
    pub seen: Histogram,
    /// The rate of arrivals.
    pub rate: RecentRate,
    /// The highest needs of the last minutes.
    pub needs: RecentNeeds,
    /// When the last claim arrived.
    pub last: Option<Timestamp>,
}
