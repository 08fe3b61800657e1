//! Arranges the choices: side by side, in a grid if the terminal is too narrow, and scrolled if it is too small.

use ratatui::layout::Rect;

/// The minimum width of a pane.
const MIN_WIDTH: u16 = 28;

/// The minimum height of a pane, with its border.
const MIN_HEIGHT: u16 = 7;

/// The columns and rows of panes in an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    area: Rect,
    panes: usize,
    columns: usize,
    rows: usize,
    /// How many rows fit into the area.
    visible_rows: usize,
}

impl Grid {
    pub(super) fn new(area: Rect, panes: usize) -> Self {
        let max_columns = usize::from(area.width / MIN_WIDTH).max(1);
        let rows = panes.div_ceil(max_columns).max(1);
        Self {
            area,
            panes,
            columns: panes.div_ceil(rows).max(1), // spreads the panes evenly over the rows
            rows,
            visible_rows: rows.min(usize::from(area.height / MIN_HEIGHT)).max(1),
        }
    }

    /// The first visible row, scrolled as little as possible to show the selected pane.
    pub(super) fn scroll_to(&self, first: usize, selected: usize) -> usize {
        let row = selected / self.columns;
        let first = first.min(self.rows - self.visible_rows);
        first
            .min(row)
            .max((row + 1).saturating_sub(self.visible_rows))
    }

    /// The number of rows of panes.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The visible panes, each with its area.
    pub(super) fn cells(&self, first: usize) -> Vec<(usize, Rect)> {
        let mut cells = Vec::new();
        for row in 0..self.visible_rows {
            let (y, height) = part(self.area.height, row, self.visible_rows);
            let area = Rect::new(self.area.x, self.area.y + y, self.area.width, height);
            cells.extend(self.row_cells(first + row, area));
        }
        cells
    }

    /// The panes of one row, in an area of its own.
    pub(super) fn row_cells(
        &self,
        row: usize,
        area: Rect,
    ) -> impl Iterator<Item = (usize, Rect)> + use<> {
        let start = row * self.columns;
        let columns = self.panes.saturating_sub(start).min(self.columns);
        (0..columns).map(move |column| {
            let (x, width) = part(area.width, column, columns);
            let cell = Rect::new(area.x + x, area.y, width, area.height);
            (start + column, cell)
        })
    }
}

/// The start and length of part `k` when a length is divided into equal parts.
fn part(length: u16, k: usize, parts: usize) -> (u16, u16) {
    let start = |k: usize| {
        let start = usize::from(length) * k / parts.max(1);
        u16::try_from(start).unwrap_or(length)
    };
    (start(k), start(k + 1) - start(k))
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::Grid;

    #[track_caller]
    fn check(
        width: u16,
        height: u16,
        panes: usize,
        columns: usize,
        rows: usize,
        visible_rows: usize,
    ) {
        let area = Rect::new(0, 1, width, height);
        let grid = Grid::new(area, panes);
        assert_eq!(
            (grid.columns, grid.rows, grid.visible_rows),
            (columns, rows, visible_rows)
        );
        let mut covered = 0;
        for (_, cell) in grid.cells(0) {
            assert_eq!(area.intersection(cell), cell);
            covered += cell.area();
        }
        assert!(panes == 0 || covered == area.area());
    }

    #[test]
    fn panes_are_side_by_side_while_they_are_wide_enough() {
        check(120, 40, 1, 1, 1, 1);
        check(120, 40, 4, 4, 1, 1);
        check(100, 40, 4, 2, 2, 2);
        check(100, 40, 5, 3, 2, 2);
        check(40, 40, 4, 1, 4, 4);
        check(40, 20, 4, 1, 4, 2);
        check(200, 50, 128, 7, 19, 7);
    }

    #[test]
    fn every_terminal_size_is_accepted() {
        check(1, 1, 3, 1, 3, 1);
        check(80, 24, 0, 1, 1, 1);
        let none = Grid::new(Rect::new(0, 0, 0, 0), 2);
        assert_eq!(none.cells(0)[0].1.area(), 0);
    }

    #[test]
    fn the_selected_pane_is_visible() {
        let grid = Grid::new(Rect::new(0, 0, 40, 20), 6);
        assert_eq!(grid.visible_rows, 2);
        assert_eq!(grid.scroll_to(0, 1), 0);
        assert_eq!(grid.scroll_to(0, 2), 1);
        assert_eq!(grid.scroll_to(0, 5), 4);
        assert_eq!(grid.scroll_to(4, 4), 4);
        assert_eq!(grid.scroll_to(4, 0), 0);
        assert_eq!(grid.scroll_to(9, 5), 4);
        assert_eq!(grid.cells(4)[0].0, 4);
    }
}
