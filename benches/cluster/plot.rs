//! Draws a burst: how many claims are Ready and how many sandboxes are available, over time.

use crate::Outcome;
use plotters::prelude::*;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a burst showed over time.
pub struct BurstOverTime {
    /// When all claims arrived.
    pub began: Instant,
    /// How long each claim waited, sorted.
    pub waited: Vec<Duration>,
    /// How many sandboxes were available after each change.
    pub available: Vec<(Instant, usize)>,
}

const SIZE: (u32, u32) = (900, 420);
const FONT: (&str, i32) = ("sans-serif", 16);

/// Writes burst.svg.
pub fn draw_burst(burst: &BurstOverTime, folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join("burst.svg");
    let seconds = |at: &Instant| at.saturating_duration_since(burst.began).as_secs_f64();
    let ready: Vec<(f64, f64)> = (1..)
        .zip(&burst.waited)
        .map(|(count, waited)| (waited.as_secs_f64(), f64::from(count)))
        .collect();
    let available: Vec<(f64, f64)> = burst
        .available
        .iter()
        .map(|(at, count)| (seconds(at), *count as f64))
        .collect();
    let points = || ready.iter().chain(&available);
    let last = points().map(|(at, _)| *at).fold(1.0, f64::max);
    let most = points().map(|(_, count)| *count).fold(1.0, f64::max);
    let root = SVGBackend::new(&file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("A burst of claims, and the refill beside it", FONT)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..last, 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .x_desc("seconds since all claims arrived")
        .y_desc("claims, sandboxes")
        .draw()?;
    for (points, label, color) in [
        (ready, "claims Ready", BLUE),
        (available, "sandboxes available", RED),
    ] {
        chart
            .draw_series(LineSeries::new(points, color))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    drop(chart);
    println!("drawn: {}", file.display());
    Ok(())
}
