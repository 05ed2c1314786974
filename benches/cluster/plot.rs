//! Draws bursts: how many claims are Ready and how many sandboxes are available, over time.

use crate::Outcome;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a burst showed over time.
pub struct BurstOverTime {
    /// Whose burst it is.
    pub title: &'static str,
    /// When all claims arrived.
    pub began: Instant,
    /// How long each claim waited, sorted.
    pub waited: Vec<Duration>,
    /// How many sandboxes were available after each change.
    pub available: Vec<(Instant, usize)>,
    /// Time from `began` until the pool was full again.
    pub refilled: Duration,
}

/// Points of a curve: seconds, and a count.
type Points = Vec<(f64, f64)>;

impl BurstOverTime {
    fn ready(&self) -> Points {
        let counted = (1..).zip(&self.waited);
        counted
            .map(|(count, waited)| (waited.as_secs_f64(), f64::from(count)))
            .collect()
    }

    fn available(&self) -> Points {
        let seconds = |at: &Instant| at.saturating_duration_since(self.began).as_secs_f64();
        self.available
            .iter()
            .map(|(at, count)| (seconds(at), *count as f64))
            .collect()
    }

    fn caption(&self) -> String {
        let ready = self.waited.last().copied().unwrap_or_default();
        format!(
            "{}: all claims Ready after {:.1} s, the pool full again after {:.1} s",
            self.title,
            ready.as_secs_f64(),
            self.refilled.as_secs_f64()
        )
    }
}

const WIDTH: u32 = 900;
/// Height of one burst.
const HEIGHT: u32 = 360;
const FONT: (&str, i32) = ("sans-serif", 16);

/// Writes burst.svg: the bursts one below the other, on the same axes.
pub fn draw_bursts(bursts: &[BurstOverTime], folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join("burst.svg");
    let points: Points = bursts
        .iter()
        .flat_map(|burst| [burst.ready(), burst.available()])
        .flatten()
        .collect();
    let last = points.iter().map(|(at, _)| *at).fold(1.0, f64::max);
    let most = points.iter().map(|(_, count)| *count).fold(1.0, f64::max);
    let rows = u32::try_from(bursts.len())?.max(1);
    let root = SVGBackend::new(&file, (WIDTH, HEIGHT * rows)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, burst) in root.split_evenly((bursts.len().max(1), 1)).iter().zip(bursts) {
        draw(burst, area, last, most * 1.1)?;
    }
    root.present()?;
    println!("drawn: {}", file.display());
    Ok(())
}

fn draw(
    burst: &BurstOverTime,
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    last: f64,
    most: f64,
) -> Outcome<()> {
    let mut chart = ChartBuilder::on(area)
        .caption(burst.caption(), FONT)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..last, 0.0..most)?;
    chart
        .configure_mesh()
        .x_desc("seconds since all claims arrived")
        .y_desc("claims, sandboxes")
        .draw()?;
    for (points, label, color) in [
        (burst.ready(), "claims Ready", BLUE),
        (burst.available(), "sandboxes available", RED),
    ] {
        chart
            .draw_series(LineSeries::new(points, color))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
