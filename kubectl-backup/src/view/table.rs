//! Tables as kubectl prints them: no borders, left aligned, three blanks between columns.

use std::borrow::Cow;

use comfy_table::{Cell, ContentArrangement, Table as Comfy, TableStyle};
use crds::text::is_unseen;

use crate::text::sanitise;

/// What a word of the coloured column means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Green.
    Good,
    /// Yellow.
    Attention,
    /// Red.
    Bad,
    /// The terminal's own colour.
    Plain,
}

impl Tone {
    /// The tone of a status or result word.
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "Succeeded" | "Stored" | "OK" | "True" | "yes" => Self::Good,
            "Suspended" | "Running" | "NoRun" | "Waiting" | "Pending" | "Skipped" | "WARNING"
            | "Former" | "Gone" | "Cancelled" | "Replaced" | "Gobackup" | "NoRecord"
            | "Warning" | "Unknown" => Self::Attention,
            "Failed" | "Unverified" | "Overdue" | "Invalid" | "Blocked" | "Missing" | "Damaged"
            | "Unreachable" | "CRITICAL" | "False" => Self::Bad,
            _ => Self::Plain,
        }
    }

    /// `text` between the escape codes of the tone.
    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Good => "32",
            Self::Attention => "33",
            Self::Bad => "31",
            Self::Plain => return text.to_owned(),
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// A table: header and rows of as many cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// Upper-case titles without blanks.
    pub(crate) header: Vec<String>,
    /// Cells.
    pub(crate) rows: Vec<Vec<String>>,
    /// Every column stays, however narrow the screen.
    pub(crate) whole: bool,
}

/// How a table is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Words of status columns are coloured.
    pub(crate) color: bool,
    /// The header is left out.
    pub(crate) no_headers: bool,
    /// Columns of the screen: a table that is wider loses columns of its own. None for any width.
    pub(crate) width: Option<usize>,
}

/// Columns whose words are coloured.
const COLOURED: [&str; 5] = ["STATUS", "RESULT", "VERIFIED", "STATE", "TYPE"];
/// Columns that a narrow screen loses, the least important first. Names, states and what is not among
/// these stay.
const DROPPED_FIRST: [&str; 21] = [
    "LABELS",
    "KNOWN-SINCE",
    "ENCRYPTED",
    "ZONE",
    "ROWS",
    "FROM",
    "TRIGGER",
    "DURATION",
    "AGE",
    "SIZE",
    "SCHEDULE",
    "NOTE",
    "VERIFIED",
    "IN",
    "STARTED",
    "STORAGE",
    "NEXT-RUN",
    "REASON",
    "LAST-RUN",
    "OBJECT",
    "MESSAGE",
];
/// Blanks between two columns.
const GAP: usize = 3;

impl Table {
    /// A table without rows.
    pub(crate) fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(ToString::to_string).collect(),
            rows: vec![],
            whole: false,
        }
    }

    /// The table, every column of which stays where `whole` is true.
    pub(crate) fn whole(mut self, whole: bool) -> Self {
        self.whole = whole;
        self
    }

    /// The table without the columns for which a screen of this width has no room.
    fn fitted(&self, width: usize) -> Self {
        let widest = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index));
            let cells = cells.map(|cell| console::measure_text_width(cell));
            cells.max().unwrap_or(0)
        };
        let mut kept: Vec<(usize, usize)> = self
            .header
            .iter()
            .enumerate()
            .map(|(index, title)| (index, widest(index).max(title.len()).max(6)))
            .collect();
        for title in DROPPED_FIRST {
            let gaps = GAP * kept.len().saturating_sub(1);
            if kept.iter().map(|(_, width)| width).sum::<usize>() + gaps <= width {
                break;
            }
            kept.retain(|(index, _)| self.header.get(*index).is_none_or(|t| t != title));
        }
        let cut = |cells: &Vec<String>| {
            let cells = kept.iter().filter_map(|(index, _)| cells.get(*index));
            cells.cloned().collect()
        };
        Self {
            header: cut(&self.header),
            rows: self.rows.iter().map(cut).collect(),
            whole: true,
        }
    }

    /// Adds a row; every cell is made safe for a terminal.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        let safe = |cell: String| {
            if is_safe(&cell) {
                cell
            } else {
                sanitise(&cell)
            }
        };
        self.rows.push(cells.into_iter().map(safe).collect());
    }

    /// The lines of the table, header first; nothing if there is no row.
    pub(crate) fn render(&self, look: Look) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        if let Some(width) = look.width.filter(|_| !self.whole) {
            return self.fitted(width).render(look);
        }
        let mut table = Comfy::new();
        table
            .load_style(TableStyle::new())
            .set_content_arrangement(ContentArrangement::Disabled);
        if !look.no_headers {
            table.set_header(
                self.header
                    .iter()
                    .map(|title| Cell::new(format!("{title:6}"))),
            );
        }
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::new));
        }
        let last = self.header.len().saturating_sub(1);
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding(if index == last { (0, 0) } else { (0, 3) });
        }
        let widths = table.column_max_content_widths();
        let mut text = String::new();
        for (index, line) in table.lines().enumerate() {
            let row = (index + usize::from(look.no_headers)).checked_sub(1);
            let line = line.trim_end();
            match row.and_then(|row| self.rows.get(row)) {
                Some(row) if look.color => text.push_str(&self.coloured(line, row, &widths)),
                _ => text.push_str(line),
            }
            text.push('\n');
        }
        text
    }

    /// The line with its status words coloured: after the widths were measured, so that a pipe
    /// and a terminal get the same columns.
    fn coloured(&self, line: &str, row: &[String], widths: &[u16]) -> String {
        let mut text = String::new();
        let mut rest = line;
        for (index, cell) in row.iter().enumerate() {
            let width = usize::from(widths.get(index).copied().unwrap_or_default()) + 3;
            let pad = width.saturating_sub(display_width(cell));
            let tone = Tone::of(cell);
            let Some(after) = rest.strip_prefix(cell.as_str()) else {
                return line.to_owned();
            };
            let title = self.header.get(index).map(String::as_str);
            if title.is_some_and(|title| COLOURED.contains(&title)) {
                text.push_str(&tone.paint(cell));
            } else {
                text.push_str(cell);
            }
            let blanks = pad.min(after.len());
            text.push_str(after.get(..blanks).unwrap_or_default());
            rest = after.get(blanks..).unwrap_or_default();
        }
        text + rest
    }
}

/// A page of several lines as a terminal may have it: line ends, tabs and colours stay, every other
/// unseen character becomes a mark. Cells and messages were cleaned one by one; this holds for what
/// nobody thought of.
pub(crate) fn page(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| c == '\n' || !is_unseen(c);
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let kept = match c {
            '\u{1b}' => colour(rest),
            '\r' if rest.starts_with("\r\n") => 2,
            '\n' | '\t' => 1,
            c if !is_unseen(c) => c.len_utf8(),
            _ => 0,
        };
        if kept == 0 {
            safe.push_str(if c == '\u{1b}' { "^[" } else { "\u{fffd}" });
            rest = &rest[c.len_utf8()..];
        } else {
            safe.push_str(&rest[..kept]);
            rest = &rest[kept..];
        }
    }
    Cow::Owned(safe)
}

/// Length of the colour code that `text` begins with, or 0.
fn colour(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else {
        return 0;
    };
    let digits = rest.len()
        - rest
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == ';')
            .len();
    if rest[digits..].starts_with('m') {
        digits + 3
    } else {
        0
    }
}

/// Cells of the terminal a text takes, for the widths comfy-table measured.
fn display_width(text: &str) -> usize {
    let mut probe = Comfy::new();
    probe.add_row([text]);
    usize::from(
        probe
            .column_max_content_widths()
            .first()
            .copied()
            .unwrap_or_default(),
    )
}

/// True if nothing in the text would move a terminal's cursor, turn its direction or stay unseen.
fn is_safe(text: &str) -> bool {
    !text.chars().any(is_unseen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "SCHEDULE", "STATUS", "AGE"]);
        table.push(
            ["a/shop", "0 2 * * *", "Suspended", "34d"]
                .map(String::from)
                .to_vec(),
        );
        table.push(
            ["a/billing", "@daily", "Active", "1y12d"]
                .map(String::from)
                .to_vec(),
        );
        table
    }

    #[test]
    fn as_kubectl_prints_it() {
        assert_eq!(
            table().render(Look::default()),
            "NAME        SCHEDULE    STATUS      AGE\n\
             a/shop      0 2 * * *   Suspended   34d\n\
             a/billing   @daily      Active      1y12d\n"
        );
    }

    #[test]
    fn narrow_columns_are_six_wide_and_headers_can_go() {
        let mut narrow = Table::new(&["A", "B"]);
        narrow.push(vec!["1".into(), "2".into()]);
        assert_eq!(narrow.render(Look::default()), "A        B\n1        2\n");
        let look = Look {
            no_headers: true,
            ..Look::default()
        };
        assert_eq!(narrow.render(look), "1   2\n");
        assert_eq!(Table::new(&["A"]).render(look), "");
    }

    /// Expected widths are counted by hand: 9 + 9 + 9 + 6 letters and three gaps of three.
    #[test]
    fn u17_a_narrow_screen_loses_the_least_important_columns() {
        let titles = |width: usize, whole: bool| {
            let look = Look {
                width: Some(width),
                ..Look::default()
            };
            let text = table().whole(whole).render(look);
            let first = text.lines().next().unwrap_or_default();
            first.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(titles(42, false), "NAME SCHEDULE STATUS AGE");
        assert_eq!(titles(41, false), "NAME SCHEDULE STATUS");
        assert_eq!(titles(30, false), "NAME STATUS");
        assert_eq!(titles(5, false), "NAME STATUS");
        assert_eq!(titles(5, true), "NAME SCHEDULE STATUS AGE");
    }

    #[test]
    fn colour_changes_no_width() {
        let look = Look {
            color: true,
            ..Look::default()
        };
        let coloured = table().render(look);
        assert!(
            coloured.contains("\u{1b}[33mSuspended\u{1b}[0m   34d"),
            "{coloured:?}"
        );
        let plain = coloured.replace("\u{1b}[33m", "").replace("\u{1b}[0m", "");
        assert_eq!(plain, table().render(Look::default()));
    }

    #[test]
    fn o11_what_turns_or_hides_text_reaches_no_cell_and_no_page() {
        assert_eq!(
            sanitise("a\u{202e}b\u{200b}c\u{2028}d"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d"
        );
        let mut table = Table::new(&["A"]);
        table.push(vec!["sql\u{202e}zst".into()]);
        assert_eq!(table.rows, [["sql\u{fffd}zst"]]);
        let plain = "NAME\n\u{1b}[32mOK\u{1b}[0m\ta\r\n\u{1b}[1;31mx\n";
        assert_eq!(page(plain), plain);
        assert_eq!(
            page("a\u{202e}\u{1b}[2J\u{1b}]0;t\u{7}\rOK \u{feff}"),
            "a\u{fffd}^[[2J^[]0;t\u{fffd}\u{fffd}OK \u{fffd}"
        );
    }

    #[test]
    fn hostile_cells_stay_one_plain_line() {
        assert_eq!(sanitise("a\nb"), "a...");
        assert_eq!(sanitise("\u{1b}[31mred\tx\u{7}"), "^[[31mred x\u{fffd}");
        let mut table = Table::new(&["A", "B", "C"]);
        table.push(["\u{9b}31mred", "ä", "x\u{7f}"].map(String::from).to_vec());
        assert_eq!(table.rows, [["\u{fffd}31mred", "ä", "x\u{fffd}"]]);
    }
}
