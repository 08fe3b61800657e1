//! The picture that stays when the view has closed.

use ratatui::{buffer::Buffer, layout::Rect, text::Line, widgets::Widget};

use super::{
    super::{
        fit::fit,
        grid::Grid,
        pane::{PaneStyle, Scroll},
        style::BOLD,
    },
    View,
};

/// The most rows of a picture, and of one row of panes. A terminal keeps about as many.
const MAX_HEIGHT: usize = 8000;
const MAX_PANE_HEIGHT: usize = 2000;

/// The least height of a pane in a picture that has to fit.
const MIN_PANE_HEIGHT: usize = 4;

/// How large a picture may be, and what it contains besides deltas and panes.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct PictureSize {
    pub(in super::super) width: u16,
    /// The rows to fit into, or `None` to show the whole text of every choice.
    pub(in super::super) height: Option<u16>,
    /// The rows of deltas.
    pub(in super::super) strip: usize,
    /// Whether the title and the numbers of the stream belong to the picture.
    pub(in super::super) is_framed: bool,
}

impl View {
    /// Draws the deltas, and the panes with the whole text of every choice. A stream without a choice has no picture.
    pub(in super::super) fn picture(&mut self, size: PictureSize) -> Option<Buffer> {
        if self.panes.is_empty() || size.width == 0 {
            return None;
        }
        let strip = self
            .strip
            .still(size.width.into(), size.strip, self.palette);
        let title = size.is_framed && !self.title.is_empty();
        let before = usize::from(title) + strip.len() + 1;
        let after = usize::from(size.is_framed);
        let grid = Grid::new(Rect::new(0, 0, size.width, u16::MAX), self.panes.len());
        let heights = self.pane_heights(&grid, size, before + after);
        let height = before
            + after
            + heights
                .iter()
                .map(|height| usize::from(*height))
                .sum::<usize>();
        let area = Rect::new(0, 0, size.width, u16::try_from(height).unwrap_or(u16::MAX));
        let mut buffer = Buffer::empty(area);
        let mut rows = area.rows();
        if title && let Some(row) = rows.next() {
            Line::styled(self.title.as_str(), BOLD).render(row, &mut buffer);
        }
        for (line, row) in strip.into_iter().zip(rows.by_ref()) {
            line.render(row, &mut buffer);
        }
        let separator = rows.next().unwrap_or_default();
        let cells = self.draw_panes(&mut buffer, &grid, &heights, separator.bottom());
        self.visible = self.panes.len();
        self.draw_separator(&mut buffer, separator, &cells);
        if size.is_framed
            && let Some(row) = area.rows().next_back()
        {
            fit(self.status(), "  ", size.width.into()).render(row, &mut buffer);
        }
        Some(buffer)
    }

    /// The height of each row of panes.
    fn pane_heights(&mut self, grid: &Grid, size: PictureSize, other_rows: usize) -> Vec<u16> {
        let is_only = self.panes.len() == 1;
        let mut heights = Vec::new();
        for row in 0..grid.rows() {
            let mut height = 3;
            for (position, cell) in grid.row_cells(row, Rect::new(0, 0, size.width, 3)) {
                if let Some(pane) = self.panes.get_mut(position) {
                    height = height.max(pane.full_height(cell.width, is_only));
                }
            }
            heights.push(height.min(MAX_PANE_HEIGHT));
        }
        let wanted: usize = heights.iter().sum();
        let room = size
            .height
            .map_or(MAX_HEIGHT, usize::from)
            .saturating_sub(other_rows);
        let fitting = room / heights.len().max(1);
        // Panes that could not show anything are of no use: then the picture scrolls.
        let limit = if wanted <= room || fitting < MIN_PANE_HEIGHT {
            MAX_HEIGHT / heights.len().max(1)
        } else {
            fitting
        };
        let limit = limit.max(3);
        let heights = heights.into_iter().map(|height| height.min(limit));
        heights
            .map(|height| u16::try_from(height).unwrap_or(u16::MAX))
            .collect()
    }

    fn draw_panes(
        &mut self,
        buffer: &mut Buffer,
        grid: &Grid,
        heights: &[u16],
        top: u16,
    ) -> Vec<(usize, Rect)> {
        let pane_style = PaneStyle {
            palette: self.palette,
            now: self.now,
            is_selected: false,
            is_only: self.panes.len() == 1,
        };
        let (mut y, mut cells) = (top, Vec::new());
        for (row, height) in heights.iter().enumerate() {
            let area = Rect::new(0, y, buffer.area.width, *height).intersection(buffer.area);
            for (position, cell) in grid.row_cells(row, area) {
                if let Some(pane) = self.panes.get_mut(position) {
                    pane.scroll(Scroll::End);
                    pane.draw(buffer, cell, pane_style);
                }
                cells.push((position, cell));
            }
            y = y.saturating_add(*height);
        }
        cells
    }
}
