//! How long the calls of one opcode took.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use rpc_stats::Histogram;

use super::text::{left, panel, put, right, span};
use crate::palette::{Palette, Role};
use crate::state::State;
use crate::units::{count, plural, time};

/// Sub-buckets of an octave.
const SUB: usize = 16;
/// The power of two that the first octave starts at.
const FIRST: u32 = 6;

/// The shortest time of sub-bucket `index`.
fn bound(index: usize) -> u64 {
    ((SUB + index % SUB) as u64) << ((index / SUB) as u32 + FIRST - SUB.ilog2())
}

/// The sub-bucket that starts at `low_ns`.
fn index(low_ns: u64) -> usize {
    let octave = low_ns.max(1 << FIRST).ilog2();
    let sub = (low_ns >> (octave - SUB.ilog2())) as usize % SUB;
    (octave - FIRST) as usize * SUB + sub
}

/// A bar of the chart.
#[derive(Debug, PartialEq, Eq)]
struct Bar {
    low_ns: u64,
    high_ns: u64,
    count: u64,
}

/// What is not empty of `histogram`, in at most `rows` bars of the same share of an octave.
fn bars(histogram: &Histogram, rows: usize) -> Vec<Bar> {
    let buckets: Vec<_> = histogram.buckets().collect();
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return Vec::new();
    };
    let (first, last) = (index(first.low_ns), index(last.low_ns));
    let mut group = 1;
    while last / group - first / group + 1 > rows.max(1) {
        group *= 2;
    }
    let begin = first / group;
    let mut bars: Vec<_> = (begin..=last / group)
        .map(|n| Bar {
            low_ns: bound(n * group),
            high_ns: bound((n + 1) * group),
            count: 0,
        })
        .collect();
    for bucket in buckets {
        let count = &mut bars[index(bucket.low_ns) / group - begin].count;
        *count = count.saturating_add(bucket.count);
    }
    bars
}

pub(super) fn render(state: &State, palette: Palette, framed: bool, area: Rect, buf: &mut Buffer) {
    let Some(row) = state.row() else {
        let inner = panel(buf, area, "latency", framed, palette);
        put(
            buf,
            inner,
            0,
            span(" no calls yet", palette.style(Role::Dim)),
        );
        return;
    };
    let Some(opcode) = state.shown().snapshot.opcodes.get(row.index) else {
        return;
    };
    let name = &row.name;
    if framed {
        let half = area.width / 2;
        let upper = Rect {
            width: half,
            ..area
        };
        let other = Rect {
            x: area.x + half,
            width: area.width - half,
            ..area
        };
        let title = format!("{name}: request seen to reply given");
        chart(&opcode.latency, &title, palette, true, upper, buf);
        let title = format!("{name}: the request had waited, at most");
        chart(&opcode.wait, &title, palette, true, other, buf);
    } else {
        let title = format!("{name}: request seen to reply given");
        chart(&opcode.latency, &title, palette, false, area, buf);
    }
}

/// The first chart of the tab alone.
pub(super) fn one(state: &State, palette: Palette, area: Rect, buf: &mut Buffer) {
    let snapshot = &state.shown().snapshot;
    let row = state.row();
    match row.and_then(|row| Some((row, snapshot.opcodes.get(row.index)?))) {
        Some((row, opcode)) => {
            let title = format!("{}: request seen to reply given", row.name);
            chart(&opcode.latency, &title, palette, true, area, buf);
        }
        None => {
            panel(buf, area, "latency", true, palette);
        }
    }
}

/// Columns of the bounds before a bar and of the count behind it.
const BOUNDS: usize = 18;
const COUNT: usize = 8;

fn chart(
    histogram: &Histogram,
    title: &str,
    palette: Palette,
    framed: bool,
    area: Rect,
    buf: &mut Buffer,
) {
    let inner = panel(buf, area, title, framed, palette);
    let dim = palette.style(Role::Dim);
    let total = histogram.count();
    if total == 0 {
        put(buf, inner, 0, span(" nothing was measured yet", dim));
        return;
    }
    let mut line = percentiles(histogram, &ALL, palette);
    if line.width() > inner.width.into() {
        line = percentiles(histogram, &FEW, palette);
    }
    put(buf, inner, 0, line);
    let outside = usize::from(histogram.below() > 0) + usize::from(histogram.above() > 0);
    let rows = usize::from(inner.height).saturating_sub(2 + outside);
    let bars = bars(histogram, rows);
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(1).max(1);
    let width = usize::from(inner.width).saturating_sub(BOUNDS + COUNT + 2);
    let mut n = 2;
    let mut line = |label: String, count_of: u64, bar: String, role| {
        put(
            buf,
            inner,
            n,
            Line::from(vec![
                span(left(&palette.text(label), BOUNDS, palette), dim),
                span(left(&bar, width, palette), palette.style(role)),
                span(right(&count(count_of), COUNT), palette.style(Role::Value)),
            ]),
        );
        n += 1;
    };
    if histogram.below() > 0 {
        line(
            "       below 64ns".to_owned(),
            histogram.below(),
            String::new(),
            Role::Bar,
        );
    }
    for bar in bars {
        let label = format!(
            "{} – {}",
            right(&time(bar.low_ns), 7),
            right(&time(bar.high_ns), 7)
        );
        let eighths = (u128::from(bar.count) * (width as u128 * 8)).div_ceil(most.into());
        line(label, bar.count, palette.bar(eighths as usize), Role::Bar);
    }
    if histogram.above() > 0 {
        line(
            "  68.7s and longer".to_owned(),
            histogram.above(),
            String::new(),
            Role::Warning,
        );
    }
}

/// Percentiles that are named, and those where there is no room for all of them.
const ALL: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
const FEW: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

fn percentiles(histogram: &Histogram, shares: &[(&str, f64)], palette: Palette) -> Line<'static> {
    let mut spans = vec![span(
        format!(" {}", plural(histogram.count(), "call")),
        palette.style(Role::Value),
    )];
    let mut add = |label: &str, ns: u64| {
        spans.push(span(format!("  {label} "), palette.style(Role::Dim)));
        spans.push(span(palette.text(time(ns)), palette.style(Role::Value)));
    };
    for &(label, share) in shares {
        if let Some(ns) = histogram.percentile_ns(share) {
            add(label, ns);
        }
    }
    add("max", histogram.max_ns());
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_the_histogram() {
        let mut histogram = Histogram::default();
        for octave in FIRST..36 {
            histogram.record(1 << octave);
            histogram.record((1 << octave) + (1 << octave) / 16 * 5);
        }
        for bucket in histogram.buckets() {
            assert_eq!(bound(index(bucket.low_ns)), bucket.low_ns);
            assert_eq!(bound(index(bucket.low_ns) + 1), bucket.high_ns);
        }
        for rows in [0, 1, 2, 7, 30, 60, 480, 1000] {
            let bars = bars(&histogram, rows);
            assert!(bars.len() <= rows.max(1));
            assert_eq!(bars.iter().map(|b| b.count).sum::<u64>(), histogram.count());
        }
    }
}
