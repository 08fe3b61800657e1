//! Where everything is on the screen.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::Style,
    text::Line,
    widgets::{Block, Paragraph, Widget},
};

use super::{
    super::{
        event_log::EventLine,
        fit::shorten,
        grid::Grid,
        pane::PaneStyle,
        style::{self, BOLD, DIM},
        wrap::Rows,
    },
    View,
};

/// The least height at which there is room for more than the panes.
const MIN_TITLE_HEIGHT: u16 = 6;

/// The least width of a screen that shows raw events beside something else, and their least height below it.
const MIN_BESIDE: u16 = 60;
const MIN_BELOW: u16 = 12;

/// How many rows of a screen show deltas.
fn strip_height(height: u16) -> u16 {
    match height {
        0..10 => 0,
        10..16 => 1,
        16..20 => 2,
        20..30 => 3,
        30..45 => 4,
        45.. => 6,
    }
}

impl View {
    pub(in super::super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        self.render(frame.buffer_mut(), area);
    }

    fn render(&mut self, buffer: &mut Buffer, area: Rect) {
        let footer = self.footer_height(area);
        let strip = strip_height(area.height);
        let title = !self.title.is_empty() && area.height >= MIN_TITLE_HEIGHT;
        let parts = [u16::from(title), strip, u16::from(strip > 0)];
        let [top, strip, separator, middle, bottom] = Layout::vertical([
            Constraint::Length(parts[0]),
            Constraint::Length(parts[1]),
            Constraint::Length(parts[2]),
            Constraint::Min(0),
            Constraint::Length(footer),
        ])
        .areas(area);
        let title = shorten(&self.title, top.width.into());
        Line::styled(title, BOLD).render(top, buffer);
        self.strip.draw(buffer, strip, self.now, self.palette);
        let cells = self.draw_choices(buffer, middle);
        self.draw_separator(buffer, separator, &cells);
        self.draw_footer(buffer, bottom);
    }

    /// Draws the panes, and the raw events if they are shown. Returns the area of each visible pane.
    fn draw_choices(&mut self, buffer: &mut Buffer, area: Rect) -> Vec<(usize, Rect)> {
        let zoomed = self.zoomed && !self.panes.is_empty();
        let shows_events = if zoomed {
            self.events_in_zoom
        } else {
            self.events_in_grid
        };
        let (area, events) = split_events(area, zoomed, shows_events);
        let cells = if zoomed {
            vec![(self.selected, area)]
        } else {
            let grid = Grid::new(area, self.panes.len());
            self.first_row = grid.scroll_to(self.first_row, self.selected);
            grid.cells(self.first_row)
        };
        self.visible = cells.len();
        for (position, cell) in &cells {
            let pane_style = PaneStyle {
                palette: self.palette,
                now: self.now,
                is_selected: *position == self.selected && self.is_used(),
                is_only: self.panes.len() == 1 && events.is_empty(),
            };
            if let Some(pane) = self.panes.get_mut(*position) {
                pane.draw(buffer, *cell, pane_style);
            }
        }
        self.draw_events(buffer, events, zoomed);
        cells
    }

    /// Draws the newest events of the zoomed choice, or of all choices in the order in which they arrived.
    fn draw_events(&self, buffer: &mut Buffer, area: Rect, zoomed: bool) {
        if area.is_empty() {
            return;
        }
        let title = if zoomed {
            " raw events of this choice "
        } else {
            " raw events "
        };
        let border = Block::bordered().border_style(DIM).title(title);
        let inner = border.inner(area);
        border.render(area, buffer);
        let height = usize::from(inner.height);
        let logs = self.panes.iter().zip(&self.logs).enumerate();
        let logs = logs.filter(|(position, _)| !zoomed || *position == self.selected);
        let mut lines: Vec<(Style, &EventLine)> = logs
            .flat_map(|(_, (pane, log))| {
                let style = style::choice(self.palette, pane.index);
                log.last(height).map(move |line| (style, line))
            })
            .collect();
        lines.sort_by_key(|(_, line)| line.number);
        let newest = lines.len().saturating_sub(height);
        let rows: Vec<Line<'_>> = lines
            .drain(newest..)
            .flat_map(|(style, line)| wrapped(&line.text, inner.width.into(), style))
            .collect();
        let newest = rows.len().saturating_sub(height);
        let rows: Vec<Line<'_>> = rows.into_iter().skip(newest).collect();
        Paragraph::new(rows).render(inner, buffer);
    }

    /// Draws a rule below the strip, with a mark above each pane into which a delta has just flowed.
    pub(super) fn draw_separator(&self, buffer: &mut Buffer, area: Rect, cells: &[(usize, Rect)]) {
        if area.is_empty() {
            return;
        }
        let width = usize::from(area.width);
        Line::styled("\u{2500}".repeat(width), DIM).render(area, buffer);
        let (deltas, choices) = (self.strip.count(), self.panes.len());
        let label = format!(
            " in: {deltas} {}  out: {choices} {} ",
            plural(deltas, "delta"),
            plural(choices, "choice")
        );
        let label_area = Rect {
            x: area.x + 2,
            width: area.width.saturating_sub(2),
            ..area
        };
        if label.len() + 4 <= width {
            Line::styled(label.as_str(), DIM).render(label_area, buffer);
        }
        let label_end = area
            .x
            .saturating_add(u16::try_from(label.len() + 2).unwrap_or(u16::MAX));
        let first_row = cells.first().map(|(_, cell)| cell.y);
        for (position, cell) in cells.iter().filter(|(_, cell)| Some(cell.y) == first_row) {
            let x = (cell.x + cell.width * 3 / 4).max(label_end);
            let Some(pane) = self.panes.get(*position) else {
                continue;
            };
            let flows = self.closed.is_some() || pane.is_active(self.now);
            if flows && x < cell.right() {
                let style = style::choice(self.palette, pane.index).patch(BOLD);
                let mark = Rect::new(x, area.y, 1, 1).intersection(area);
                Line::styled("\u{25bc}", style).render(mark, buffer);
            }
        }
    }
}

pub(super) fn plural(count: usize, noun: &'static str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{noun}{s}")
}

/// Divides an area between the panes and the raw events, which get an empty one if there is no room.
fn split_events(area: Rect, zoomed: bool, shows_events: bool) -> (Rect, Rect) {
    let nothing = Rect { height: 0, ..area };
    if !shows_events {
        return (area, nothing);
    }
    if area.width >= MIN_BESIDE && (zoomed || area.width >= 2 * MIN_BESIDE) {
        let [panes, events] =
            Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
        return (panes, events);
    }
    if area.height >= MIN_BELOW {
        let [panes, events] =
            Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
        return (panes, events);
    }
    (area, nothing)
}

/// An event in as many rows as it needs.
fn wrapped(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let mut rows = Rows::default();
    rows.update(text, width.max(1));
    let row = |row| Some(Line::styled(rows.get(row)?.text.clone(), style));
    (0..rows.len()).filter_map(row).collect()
}
