//! The live table (PURE): what a key does, and what is on the screen.

use chrono::{DateTime, Utc};

use super::list::{Row, Shape, table};
use super::table::Look;

/// Keys the table knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// Take what was typed.
    Enter,
    /// Leave what was typed.
    Escape,
    /// Take the last letter away.
    Backspace,
    /// A letter.
    Char(char),
}

/// What is to be done to the selected object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Leave.
    Quit,
    /// Run it now.
    Run(String),
    /// Suspend it, or resume it.
    Suspend(String),
    /// Show the log of its newest run.
    Logs(String),
    /// Describe it.
    Describe(String),
}

/// Where the user is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// All objects.
    pub(crate) rows: Vec<Row>,
    /// The selected line.
    pub(crate) selected: usize,
    /// Text a name must hold.
    pub(crate) filter: String,
    /// The filter is being typed.
    pub(crate) typing: bool,
    /// What was done last.
    pub(crate) message: String,
}

/// What the keys mean.
const KEYS: &str = "t run  s suspend or resume  l logs  d describe  / filter  q quit";

impl State {
    /// The lines that are shown.
    pub(crate) fn visible(&self) -> Vec<&Row> {
        self.rows
            .iter()
            .filter(|row| row.name.contains(&self.filter))
            .collect()
    }

    fn name(&self) -> Option<String> {
        self.visible()
            .get(self.selected)
            .map(|row| row.name.clone())
    }

    /// Takes a key; gives what is to be done.
    pub(crate) fn press(&mut self, key: Key) -> Option<Action> {
        if self.typing {
            match key {
                Key::Char(c) => self.filter.push(c),
                Key::Backspace => {
                    self.filter.pop();
                }
                Key::Escape => {
                    self.filter.clear();
                    self.typing = false;
                }
                Key::Enter => self.typing = false,
                Key::Up | Key::Down => {}
            }
            self.selected = 0;
            return None;
        }
        let last = self.visible().len().saturating_sub(1);
        match key {
            Key::Up | Key::Char('k') => self.selected = self.selected.saturating_sub(1),
            Key::Down | Key::Char('j') => self.selected = (self.selected + 1).min(last),
            Key::Char('/') => self.typing = true,
            Key::Escape => self.filter.clear(),
            Key::Char('q') => return Some(Action::Quit),
            Key::Char('t') => return self.name().map(Action::Run),
            Key::Char('s') => return self.name().map(Action::Suspend),
            Key::Char('l') => return self.name().map(Action::Logs),
            Key::Char('d') | Key::Enter => return self.name().map(Action::Describe),
            Key::Char(_) | Key::Backspace => {}
        }
        None
    }

    /// The screen, of at most `height` lines.
    pub(crate) fn frame(&self, height: usize, color: bool, now: DateTime<Utc>) -> String {
        let visible: Vec<Row> = self.visible().into_iter().cloned().collect();
        let text = table(&visible, Shape::default(), now).render(Look {
            color,
            no_headers: false,
        });
        let mut lines = text.lines();
        let mut frame = format!("{}\n", KEYS);
        frame.push_str(&format!(
            "  {}\n",
            lines.next().unwrap_or("No backups found.")
        ));
        // Two lines above, two below.
        let room = height.saturating_sub(4).max(1);
        let first = self.selected.saturating_sub(room - 1);
        for (index, line) in lines.enumerate().skip(first).take(room) {
            let mark = if index == self.selected { ">" } else { " " };
            frame.push_str(&format!("{mark} {line}\n"));
        }
        if self.typing || !self.filter.is_empty() {
            frame.push_str(&format!("/{}\n", self.filter));
        } else {
            frame.push_str(&format!("{}\n", self.message));
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let row = |name: &str| Row {
            name: format!("mysqlbackup/{name}"),
            status: "Active",
            ..Row::default()
        };
        State {
            rows: ["billing", "crm", "shop"].map(row).to_vec(),
            ..State::default()
        }
    }

    #[test]
    fn keys_move_select_and_filter() {
        let mut state = state();
        assert_eq!(state.press(Key::Down), None);
        assert_eq!(
            state.press(Key::Char('t')),
            Some(Action::Run("mysqlbackup/crm".into()))
        );
        for key in ['/', 's', 'h'] {
            assert_eq!(state.press(Key::Char(key)), None);
        }
        assert_eq!(state.visible().len(), 1);
        assert_eq!(state.press(Key::Enter), None);
        assert_eq!(
            state.press(Key::Char('s')),
            Some(Action::Suspend("mysqlbackup/shop".into()))
        );
        state.press(Key::Escape);
        assert_eq!(state.visible().len(), 3);
        assert_eq!(state.press(Key::Char('q')), Some(Action::Quit));
    }

    #[test]
    fn the_selected_line_stays_on_a_small_screen() {
        let mut state = state();
        state.press(Key::Down);
        state.press(Key::Down);
        let now = crds::time::parse_rfc3339("2026-09-04T09:20:00Z").unwrap_or_default();
        let frame = state.frame(5, false, now);
        assert!(
            frame.contains("> mysqlbackup/shop") && !frame.contains("billing"),
            "{frame}"
        );
        assert_eq!(frame.lines().count(), 4);
    }
}
