//! Where the choices stand: beside each other, in a grid where that is too narrow, and scrolled where it is too small.

use ratatui::layout::Rect;

/// Columns below which a choice cannot be read.
const NARROWEST: u16 = 28;

/// Rows below which a choice shows too little, its border included.
const LOWEST: u16 = 7;

/// How many choices stand beside and above each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    area: Rect,
    panes: usize,
    columns: usize,
    rows: usize,
    /// Rows that fit.
    fit: usize,
}

impl Grid {
    pub(super) fn new(area: Rect, panes: usize) -> Self {
        let most = usize::from(area.width / NARROWEST).max(1);
        let rows = panes.div_ceil(most).max(1);
        Self {
            area,
            panes,
            columns: panes.div_ceil(rows).max(1), // no row is much emptier than the others
            rows,
            fit: rows.min(usize::from(area.height / LOWEST)).max(1),
        }
    }

    /// The first row to be shown, so that a choice is seen and as little as possible moves.
    pub(super) fn scrolled(&self, first: usize, selected: usize) -> usize {
        let row = selected / self.columns;
        let first = first.min(self.rows - self.fit);
        first.min(row).max((row + 1).saturating_sub(self.fit))
    }

    /// The choices that are shown, and where.
    pub(super) fn cells(&self, first: usize) -> Vec<(usize, Rect)> {
        let mut cells = Vec::new();
        for row in 0..self.fit {
            let start = (first + row) * self.columns;
            let beside = self.panes.saturating_sub(start).min(self.columns);
            let (y, height) = part(self.area.height, row, self.fit);
            for column in 0..beside {
                let (x, width) = part(self.area.width, column, beside);
                let cell = Rect::new(self.area.x + x, self.area.y + y, width, height);
                cells.push((start + column, cell));
            }
        }
        cells
    }
}

/// The start and length of one of some equal parts.
fn part(whole: u16, k: usize, parts: usize) -> (u16, u16) {
    let at = |k: usize| {
        let at = usize::from(whole) * k / parts.max(1);
        u16::try_from(at).unwrap_or(whole)
    };
    (at(k), at(k + 1) - at(k))
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::Grid;

    #[track_caller]
    fn check(width: u16, height: u16, panes: usize, columns: usize, rows: usize, fit: usize) {
        let area = Rect::new(0, 1, width, height);
        let grid = Grid::new(area, panes);
        assert_eq!((grid.columns, grid.rows, grid.fit), (columns, rows, fit));
        let mut covered = 0;
        for (_, cell) in grid.cells(0) {
            assert_eq!(area.intersection(cell), cell);
            covered += cell.area();
        }
        assert!(panes == 0 || covered == area.area());
    }

    #[test]
    fn choices_stand_side_by_side_while_they_can_be_read() {
        check(120, 40, 1, 1, 1, 1);
        check(120, 40, 4, 4, 1, 1);
        check(100, 40, 4, 2, 2, 2);
        check(100, 40, 5, 3, 2, 2);
        check(40, 40, 4, 1, 4, 4);
        check(40, 20, 4, 1, 4, 2);
        check(200, 50, 128, 7, 19, 7);
    }

    #[test]
    fn no_terminal_is_too_small() {
        check(1, 1, 3, 1, 3, 1);
        check(80, 24, 0, 1, 1, 1);
        let none = Grid::new(Rect::new(0, 0, 0, 0), 2);
        assert_eq!(none.cells(0)[0].1.area(), 0);
    }

    #[test]
    fn the_selected_choice_is_seen() {
        let grid = Grid::new(Rect::new(0, 0, 40, 20), 6);
        assert_eq!(grid.fit, 2);
        assert_eq!(grid.scrolled(0, 1), 0);
        assert_eq!(grid.scrolled(0, 2), 1);
        assert_eq!(grid.scrolled(0, 5), 4);
        assert_eq!(grid.scrolled(4, 4), 4);
        assert_eq!(grid.scrolled(4, 0), 0);
        assert_eq!(grid.scrolled(9, 5), 4);
        assert_eq!(grid.cells(4)[0].0, 4);
    }
}
