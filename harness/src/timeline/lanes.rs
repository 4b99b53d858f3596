//! Lays intervals that may overlap on as few rows as possible, so that bars never hide each other.

use prestage_vram::Nanos;

/// The row of each interval, given by their start: the lowest row that is free by then. Uses as many rows as the
/// largest number of intervals that overlap (greedy interval partitioning). Returns the rows and their number.
pub(super) fn rows(intervals: impl IntoIterator<Item = (Nanos, Nanos)>) -> (Vec<usize>, usize) {
    let mut free_at: Vec<Nanos> = Vec::new();
    let rows = intervals
        .into_iter()
        .map(|(start, end)| match free_at.iter().position(|free| *free <= start) {
            Some(row) => {
                free_at[row] = end;
                row
            }
            None => {
                free_at.push(end);
                free_at.len() - 1
            }
        })
        .collect();
    (rows, free_at.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_no_more_rows_than_overlap() {
        let n = Nanos::new;
        let (rows_of, count) = rows([(n(0), n(10)), (n(2), n(5)), (n(5), n(6)), (n(10), n(12))]);
        assert_eq!((rows_of, count), (vec![0, 1, 1, 0], 2));
        assert_eq!(rows([]), (vec![], 0));
    }
}
