//! Draws lines over time as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 40.0;

/// A line with its points: minutes and sandboxes.
pub struct Line {
    name: &'static str,
    color: &'static str,
    points: Vec<(f64, f64)>,
}

impl Line {
    pub fn new(name: &'static str, color: &'static str, points: Vec<(f64, f64)>) -> Self {
        Self { name, color, points }
    }
}

/// The picture of `lines`.
pub fn plot(title: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|(_, size)| *size).fold(1.0, f64::max);
    let last = points().map(|(minute, _)| *minute).fold(1.0, f64::max);
    let top = (most / 50.0).ceil() * 50.0;
    let x = |minute: f64| LEFT + minute / last * (WIDTH - LEFT - 10.0);
    let y = |size: f64| HEIGHT - BOTTOM - size / top * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for step in 0..=5 {
        let size = top / 5.0 * f64::from(step);
        let (at, right) = (y(size), WIDTH - 10.0);
        _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#e0e0e0\"/>"
        );
        _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{size:.0}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for step in 0..=4 {
        let minute = last / 4.0 * f64::from(step);
        let (at, under) = (x(minute), HEIGHT - BOTTOM + 18.0);
        _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{under}\" text-anchor=\"middle\">{minute:.0} min</text>"
        );
    }
    let mut at = LEFT;
    for line in lines {
        let mut path = String::new();
        let mut before: Option<f64> = None;
        for (minute, size) in &line.points {
            let (px, py) = (x(*minute), y(*size));
            match before {
                None => _ = write!(path, "M{px:.1} {py:.1}"),
                // A size holds until it changes.
                Some(held) if (held - py).abs() > 0.01 => _ = write!(path, "H{px:.1}V{py:.1}"),
                Some(_) => {}
            }
            before = Some(py);
        }
        let end = line.points.last().map_or(LEFT, |(minute, _)| x(*minute));
        let color = line.color;
        _ = writeln!(
            svg,
            "<path d=\"{path}H{end:.1}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>"
        );
        _ = writeln!(
            svg,
            "<rect x=\"{at}\" y=\"12\" width=\"18\" height=\"4\" fill=\"{color}\"/>"
        );
        _ = writeln!(svg, "<text x=\"{}\" y=\"18\">{}</text>", at + 24.0, line.name);
        at += 40.0 + 7.0 * line.name.len() as f64;
    }
    svg + "</svg>\n"
}
