//! Draws the dashboard of a real demo run and writes it as SVG: `picture PROGRAM FILE.svg`, where
//! PROGRAM is gpurpc-top. `cargo xtask picture` calls it.

use std::error::Error;
use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gpurpc_top::live::Live;
use gpurpc_top::palette::Palette;
use gpurpc_top::source::Source;
use gpurpc_top::state::{Settings, State, Watching};
use gpurpc_top::view::Dashboard;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Columns and lines.
const SIZE: (u16, u16) = (120, 42);
/// How long the demo is watched.
const LENGTH: Duration = Duration::from_secs(12);
/// Pixels of a cell.
const CELL: (f32, f32) = (8.4, 18.0);
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#1d2129";

/// Ends the demo, whatever happens.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(program), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("give gpurpc-top's path and the file to write".into());
    };
    let live = Live::of_next(None);
    let demo = Command::new(program)
        .args(["--as-loader", "--demo", "--watched"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let demo = Demo(demo);
    let mut live = live.started(demo.0.id());
    let mut state = State::new(Settings::default(), Watching::Demo);
    state.resize(SIZE.0, SIZE.1);
    let started = Instant::now();
    while started.elapsed() < LENGTH {
        state.observe(started.elapsed(), live.look());
        std::thread::sleep(Duration::from_millis(100));
    }
    if !state.has_data() {
        return Err("the demo has published no statistics".into());
    }
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1))?;
    let dashboard = Dashboard {
        state: &state,
        palette: Palette::default(),
    };
    terminal.draw(|frame| frame.render_widget(dashboard, frame.area()))?;
    std::fs::write(file, svg(terminal.backend().buffer()))?;
    Ok(())
}

fn colour(colour: Color, default: &str) -> String {
    let named = match colour {
        Color::Red => "#e06c75",
        Color::Green => "#98c379",
        Color::Yellow => "#e5c07b",
        Color::Blue => "#61afef",
        Color::Cyan => "#56b6c2",
        Color::DarkGray => "#7f8794",
        Color::Rgb(r, g, b) => return format!("#{r:02x}{g:02x}{b:02x}"),
        _ => default,
    };
    named.to_owned()
}

/// Colours of a cell: of its text and of what is behind it.
fn colours(cell: &Cell) -> (String, String) {
    let (fg, bg) = (colour(cell.fg, FOREGROUND), colour(cell.bg, BACKGROUND));
    if cell.modifier.contains(Modifier::REVERSED) {
        (bg, fg)
    } else {
        (fg, bg)
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

fn svg(buffer: &Buffer) -> String {
    let (w, h) = CELL;
    let (columns, lines) = (buffer.area.width, buffer.area.height);
    let width = f32::from(columns) * w + 24.0;
    let height = f32::from(lines) * h + 24.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <title>gpurpc-top watching its demo</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..lines {
        let mut x = 0;
        while x < columns {
            // Cells that look alike are one piece.
            let first = &buffer[(x, y)];
            let alike =
                |cell: &Cell| colours(cell) == colours(first) && cell.modifier == first.modifier;
            let differs = (x..columns).find(|&x| !alike(&buffer[(x, y)]));
            let end = differs.unwrap_or(columns);
            let text: String = (x..end).map(|x| buffer[(x, y)].symbol()).collect();
            piece(&mut svg, (x, y), (end - x, first), &text);
            x = end;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn piece(svg: &mut String, (x, y): (u16, u16), (cells, cell): (u16, &Cell), text: &str) {
    let (w, h) = CELL;
    let (fg, bg) = colours(cell);
    let (left, top) = (12.0 + f32::from(x) * w, 12.0 + f32::from(y) * h);
    let length = f32::from(cells) * w;
    if bg != BACKGROUND {
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{h}\" fill=\"{bg}\"/>"
        );
    }
    if cell.modifier.contains(Modifier::UNDERLINED) {
        let (y, right) = (top + h - 2.0, left + length);
        let _ = writeln!(
            svg,
            "<path d=\"M{left:.1} {y:.1}H{right:.1}\" stroke=\"{fg}\" opacity=\"0.6\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let bold = if cell.modifier.contains(Modifier::BOLD) {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let baseline = top + 14.0;
    let _ = writeln!(
        svg,
        "<text x=\"{left:.1}\" y=\"{baseline:.1}\" textLength=\"{length:.1}\" fill=\"{fg}\"{bold} \
         xml:space=\"preserve\">{}</text>",
        escaped(text)
    );
}
