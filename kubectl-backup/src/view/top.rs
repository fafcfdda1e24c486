//! The live table (PURE): what a key does, and what is on the screen.

use std::fmt;

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

/// The object of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectName {
    /// Its namespace; empty where all are of the command's.
    pub(crate) namespace: String,
    /// `singular/name`.
    pub(crate) name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.namespace.as_str() {
            "" => Ok(()),
            namespace => write!(f, " in namespace {namespace}"),
        }
    }
}

/// What is to be done to the selected object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Leave.
    Quit,
    /// Run it now.
    Run(ObjectName),
    /// Suspend it, or resume it.
    Suspend(ObjectName),
    /// Show the log of its newest run.
    Logs(ObjectName),
    /// Describe it.
    Describe(ObjectName),
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
    /// Lines carry their namespace.
    pub(crate) namespaced: bool,
    /// What is done once the user has said yes.
    pub(crate) asked: Option<Action>,
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

    fn name(&self) -> Option<ObjectName> {
        let row = *self.visible().get(self.selected)?;
        let namespace = if self.namespaced {
            row.namespace.clone()
        } else {
            String::new()
        };
        Some(ObjectName {
            namespace,
            name: row.name.clone(),
        })
    }

    /// Asks before something is changed.
    fn ask(&mut self, action: Option<Action>) {
        self.message = match &action {
            Some(Action::Run(name)) => format!("Run {name} now? (y/n)"),
            Some(Action::Suspend(name)) => format!("Suspend or resume {name}? (y/n)"),
            _ => String::new(),
        };
        self.asked = action;
    }

    /// Takes a key; gives what is to be done.
    pub(crate) fn press(&mut self, key: Key) -> Option<Action> {
        if let Some(action) = self.asked.take() {
            self.message.clear();
            return (key == Key::Char('y')).then_some(action);
        }
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
            Key::Char('t') => self.ask(self.name().map(Action::Run)),
            Key::Char('s') => self.ask(self.name().map(Action::Suspend)),
            Key::Char('l') => return self.name().map(Action::Logs),
            Key::Char('d') | Key::Enter => return self.name().map(Action::Describe),
            Key::Char(_) | Key::Backspace => {}
        }
        None
    }

    /// The screen, of at most `height` lines.
    pub(crate) fn frame(&self, height: usize, look: Look, now: DateTime<Utc>) -> String {
        let visible: Vec<Row> = self.visible().into_iter().cloned().collect();
        let shape = Shape {
            namespace: self.namespaced,
            ..Shape::default()
        };
        let text = table(&visible, shape, now).render(Look {
            // The mark of the selected line.
            width: look.width.map(|width| width.saturating_sub(2)),
            ..look
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
        if self.asked.is_none() && (self.typing || !self.filter.is_empty()) {
            frame.push_str(&format!("/{}\n", self.filter));
        } else {
            frame.push_str(&format!("{}\n", self.message));
        }
        frame
    }
}

/// A text of more lines than the screen has.
pub(crate) struct Pager {
    lines: Vec<String>,
    first: usize,
}

impl Pager {
    /// From its first line.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            lines: text.lines().map(str::to_owned).collect(),
            first: 0,
        }
    }

    /// Lines of text on a screen: one is for the keys.
    fn room(height: usize) -> usize {
        height.saturating_sub(2).max(1)
    }

    /// Takes a key; true to go back.
    pub(crate) fn press(&mut self, key: Key, height: usize) -> bool {
        let room = Self::room(height);
        let last = self.lines.len().saturating_sub(room);
        self.first = match key {
            Key::Up | Key::Char('k') => self.first.saturating_sub(1),
            Key::Down | Key::Char('j') => self.first + 1,
            Key::Char(' ' | 'f') => self.first + room,
            Key::Char('b') => self.first.saturating_sub(room),
            Key::Char('g') => 0,
            Key::Char('G') => last,
            _ => return true,
        }
        .min(last);
        false
    }

    /// The screen.
    pub(crate) fn frame(&self, height: usize) -> String {
        let room = Self::room(height);
        let shown = self.lines.iter().skip(self.first).take(room);
        let mut frame: String = shown.map(|line| format!("{line}\n")).collect();
        let below = self.lines.len().saturating_sub(self.first + room);
        if self.first > 0 || below > 0 {
            frame.push_str(&format!(
                "{below} more below; j k space b scroll. Any other key goes back.\n"
            ));
        } else {
            frame.push_str("Any key goes back.\n");
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
        let of = |name: &str| ObjectName {
            name: name.into(),
            ..ObjectName::default()
        };
        // Nothing is changed without a yes.
        assert_eq!(state.press(Key::Char('t')), None);
        assert_eq!(state.message, "Run mysqlbackup/crm now? (y/n)");
        assert_eq!(state.press(Key::Char('n')), None);
        assert_eq!(state.press(Key::Char('t')), None);
        assert_eq!(
            state.press(Key::Char('y')),
            Some(Action::Run(of("mysqlbackup/crm")))
        );
        for key in ['/', 's', 'h'] {
            assert_eq!(state.press(Key::Char(key)), None);
        }
        assert_eq!(state.visible().len(), 1);
        assert_eq!(state.press(Key::Enter), None);
        assert_eq!(state.press(Key::Char('s')), None);
        assert_eq!(
            state.press(Key::Char('y')),
            Some(Action::Suspend(of("mysqlbackup/shop")))
        );
        state.press(Key::Escape);
        assert_eq!(state.visible().len(), 3);
        assert_eq!(state.press(Key::Char('q')), Some(Action::Quit));
    }

    #[test]
    fn u17_a_long_text_scrolls() {
        let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        let mut pager = Pager::new(&text);
        assert!(pager.frame(6).starts_with("line 1\n") && pager.frame(6).contains("6 more below"));
        assert!(!pager.press(Key::Char(' '), 6));
        assert!(pager.frame(6).starts_with("line 5\n"));
        assert!(!pager.press(Key::Char('G'), 6));
        assert!(!pager.press(Key::Down, 6), "it ends at its end");
        assert!(pager.frame(6).starts_with("line 7\n") && pager.frame(6).contains("0 more below"));
        assert!(!pager.press(Key::Up, 6));
        assert!(pager.frame(6).starts_with("line 6\n"));
        assert!(pager.press(Key::Char('q'), 6));
    }

    #[test]
    fn the_selected_line_stays_on_a_small_screen() {
        let mut state = state();
        state.press(Key::Down);
        state.press(Key::Down);
        let now = crds::time::parse_rfc3339("2026-09-04T09:20:00Z").unwrap_or_default();
        let frame = state.frame(5, Look::default(), now);
        assert!(
            frame.contains("> mysqlbackup/shop") && !frame.contains("billing"),
            "{frame}"
        );
        assert_eq!(frame.lines().count(), 4);
    }
}
