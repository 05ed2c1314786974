//! Draws what a claim and a sandbox cost against the size of the pool.

use crate::{Cost, Outcome};
use plotters::prelude::*;
use std::fs;
use std::path::Path;

const SIZE: (u32, u32) = (900, 420);
const FONT: (&str, i32) = ("sans-serif", 16);

/// Writes cost.svg.
pub fn draw_cost(costs: &[Cost], folder: &Path) -> Outcome<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join("cost.svg");
    let root = SVGBackend::new(&file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let most = costs.iter().map(|cost| cost.each).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&root)
        .caption("Processor time of decisions against the size of the pool", FONT)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d((80.0..15_000.0).log_scale(), 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .x_desc("sandboxes of the pool")
        .y_desc("microseconds each")
        .draw()?;
    for (kind, label, color) in [
        ("fill", "a sandbox filled", RED),
        ("claims", "a claim at 20/s", BLUE),
    ] {
        let of_kind = costs.iter().filter(|cost| cost.kind == kind);
        let points: Vec<_> = of_kind.map(|cost| (cost.size as f64, cost.each)).collect();
        chart
            .draw_series(LineSeries::new(points, color))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
    }
    chart.configure_series_labels().border_style(BLACK).draw()?;
    root.present()?;
    drop(chart);
    println!("drawn: {}", file.display());
    Ok(())
}
