//! Draws a burst: how long each claim waited, and the sandboxes that were available meanwhile.

use crate::Outcome;
use plotters::prelude::*;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// What a burst showed over time.
pub struct BurstOverTime {
    /// When the first claim was POSTed.
    pub began: Instant,
    /// When each claim became Ready, and how many milliseconds it had waited.
    pub claims: Vec<(Instant, f64)>,
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
    let last = burst
        .available
        .iter()
        .map(|(at, _)| seconds(at))
        .fold(1.0, f64::max);
    let longest = burst.claims.iter().map(|(_, waited)| *waited).fold(1.0, f64::max);
    let most = burst.available.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let root = SVGBackend::new(&file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("A burst of claims, and the refill beside it", FONT)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .right_y_label_area_size(60)
        .build_cartesian_2d(0.0..last, 0.0..longest * 1.1)?
        .set_secondary_coord(0.0..last, 0.0..most as f64 * 1.1);
    chart
        .configure_mesh()
        .x_desc("seconds since the first claim")
        .y_desc("milliseconds from POST to Ready")
        .draw()?;
    chart
        .configure_secondary_axes()
        .y_desc("sandboxes available")
        .draw()?;
    let points = burst.claims.iter();
    chart.draw_series(points.map(|(at, waited)| Circle::new((seconds(at), *waited), 2, BLUE.filled())))?;
    let line = burst
        .available
        .iter()
        .map(|(at, count)| (seconds(at), *count as f64));
    chart.draw_secondary_series(LineSeries::new(line, RED))?;
    root.present()?;
    println!("drawn: {}", file.display());
    Ok(())
}
