//! The only place that touches the terminal: results on stdout, everything else on stderr.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use crate::cli::{ColorWhen, Global, grouped};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::text::sanitise;
use crate::view::table::{Look, Table, Tone, page};
use crate::view::top::Key;

/// Marks of progress lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Something was begun.
    Action,
    /// Waiting.
    Wait,
    /// Good.
    Good,
    /// Bad.
    Bad,
}

impl Mark {
    /// The symbol, or its word where the locale has no UTF-8.
    pub(crate) fn symbol(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (Self::Action, false) => "►",
            (Self::Wait, false) => "◎",
            (Self::Good, false) => "✔",
            (Self::Bad, false) => "✖",
            (Self::Action, true) => ">",
            (Self::Wait, true) => "..",
            (Self::Good, true) => "OK",
            (Self::Bad, true) => "FAILED",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Good => Tone::Good,
            Self::Bad => Tone::Bad,
            Self::Action | Self::Wait => Tone::Plain,
        }
    }
}

/// Which streams are terminals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terminals {
    /// Standard input.
    pub(crate) input: bool,
    /// Standard output.
    pub(crate) output: bool,
    /// Standard error.
    pub(crate) error: bool,
}

/// The terminal, or whatever stands in its place.
pub(crate) struct Ui {
    terminals: Terminals,
    color_out: bool,
    color_err: bool,
    ascii: bool,
    quiet: bool,
    dumb: bool,
    yes: bool,
    no_input: bool,
}

impl Ui {
    /// The process's streams.
    pub(crate) fn new(global: &Global, env: &Env) -> Self {
        let terminals = Terminals {
            input: std::io::stdin().is_terminal(),
            output: std::io::stdout().is_terminal(),
            error: std::io::stderr().is_terminal(),
        };
        let color = |terminal: bool| match global.color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => !env.no_color && (env.force_color || (terminal && !env.dumb)),
        };
        Self {
            terminals,
            color_out: color(terminals.output),
            color_err: color(terminals.error),
            ascii: global.ascii || !env.utf8,
            quiet: global.quiet,
            dumb: env.dumb,
            yes: global.yes,
            no_input: global.no_input,
        }
    }

    /// True if symbols must be ASCII.
    pub(crate) fn ascii(&self) -> bool {
        self.ascii
    }

    /// True if stderr is a terminal that takes a moving line.
    fn moving(&self) -> bool {
        self.terminals.error && !self.quiet && !self.dumb
    }

    /// True if stdout is a screen that can be drawn on, with somebody at the keys.
    pub(crate) fn is_screen(&self) -> bool {
        self.terminals.input && self.terminals.output && !self.no_input && !self.dumb
    }

    /// True if people read stdout.
    pub(crate) fn is_read(&self) -> bool {
        self.terminals.output
    }

    /// True if people read stderr.
    pub(crate) fn is_read_beside(&self) -> bool {
        self.terminals.error
    }

    /// Columns of the screen, if stdout is one.
    pub(crate) fn width(&self) -> Option<usize> {
        let width = || usize::from(console::Term::stdout().size().1);
        self.terminals.output.then(width).filter(|width| *width > 0)
    }

    /// True if words on stdout may be coloured.
    pub(crate) fn color(&self) -> bool {
        self.color_out
    }

    /// Lines of the screen.
    pub(crate) fn height(&self) -> usize {
        usize::from(console::Term::stdout().size().0)
    }

    /// Draws a screen from the top.
    ///
    /// # Errors
    /// A closed terminal.
    pub(crate) fn screen(&self, text: &str) -> Result<()> {
        let term = console::Term::stdout();
        term.clear_screen()?;
        self.out(&text.replace('\n', "\r\n"))
    }

    /// Reads one key at a time, for a thread of its own; `None` when there are no more. Ctrl-C is
    /// the signal it always is.
    pub(crate) fn key_reader(&self) -> impl Fn() -> Option<Key> + Send + use<> {
        let term = console::Term::stdout();
        move || {
            loop {
                return Some(match term.read_key().ok()? {
                    console::Key::ArrowUp => Key::Up,
                    console::Key::ArrowDown => Key::Down,
                    console::Key::Enter => Key::Enter,
                    console::Key::Escape => Key::Escape,
                    console::Key::Backspace => Key::Backspace,
                    console::Key::Char(c) => Key::Char(c),
                    _ => continue,
                });
            }
        }
    }

    /// A bar on stderr, where stderr is a terminal that can move the cursor.
    pub(crate) fn bar(&self) -> Option<indicatif::ProgressBar> {
        if !self.moving() {
            return None;
        }
        let bar = indicatif::ProgressBar::new(100);
        let template = if self.ascii {
            "[{bar:20}] {msg}"
        } else {
            "◎ {bar:20} {msg}"
        };
        let style = indicatif::ProgressStyle::with_template(template)
            .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar());
        let style = if self.ascii {
            style.progress_chars("#>-")
        } else {
            style
        };
        bar.set_style(style);
        Some(bar)
    }

    /// True if a question can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.terminals.input && self.terminals.error && !self.no_input
    }

    /// Writes a result: as it is where a program reads it; a terminal gets nothing that would turn,
    /// hide or move text.
    ///
    /// # Errors
    /// A closed pipe ends the program quietly.
    pub(crate) fn out(&self, text: &str) -> Result<()> {
        let text = if self.terminals.output {
            page(text)
        } else {
            Cow::Borrowed(text)
        };
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }

    /// Writes bytes of a result as they are; the caller writes them in large parts.
    ///
    /// # Errors
    /// As [`Self::out`].
    pub(crate) fn bytes(&self, part: &[u8]) -> Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(part)?;
        Ok(out.flush()?)
    }

    /// Writes one line of a result.
    ///
    /// # Errors
    /// As [`Self::out`].
    pub(crate) fn line(&self, text: &str) -> Result<()> {
        self.out(&format!("{text}\n"))
    }

    /// Writes a table.
    ///
    /// # Errors
    /// As [`Self::out`].
    pub(crate) fn table(&self, table: &Table, no_headers: bool) -> Result<()> {
        self.out(&table.render(Look {
            color: self.color_out,
            no_headers,
            width: self.width(),
        }))
    }

    /// Writes a line to stderr. Nobody is told if that fails: there is nowhere to tell.
    pub(crate) fn note(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{}", page(text));
    }

    /// A progress line; `--quiet` drops it.
    pub(crate) fn progress(&self, mark: Mark, text: &str) {
        if !self.quiet {
            let symbol = mark.symbol(self.ascii);
            let symbol = if self.color_err {
                mark.tone().paint(symbol)
            } else {
                symbol.to_owned()
            };
            self.note(&format!("{symbol} {text}"));
        }
    }

    /// A warning.
    pub(crate) fn warn(&self, text: &str) {
        self.note(&format!("warning: {text}"));
    }

    /// What to do next; `--quiet` drops it.
    pub(crate) fn hint(&self, text: &str) {
        if !self.quiet {
            self.note(&format!("Hint: {text}"));
        }
    }

    /// Tells a failure.
    pub(crate) fn error(&self, error: &Error) {
        if !error.message.is_empty() {
            self.note(&error.message);
        }
        if let Some(hint) = &error.hint {
            self.hint(hint);
        }
    }

    /// Asks for consent; `--yes` gives it.
    ///
    /// # Errors
    /// Without a terminal the question can't be asked: a usage error that says what it was about.
    pub(crate) fn confirm(&self, consequence: &str) -> Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !self.can_ask() {
            return Err(Error::usage(format!(
                "cannot ask for confirmation: {}. Add --yes, or --dry-run=server to preview. {consequence}",
                if self.no_input {
                    "--no-input is set"
                } else {
                    "stdin is not a terminal"
                },
            )));
        }
        self.note(consequence);
        let answer = dialoguer::Confirm::new()
            .with_prompt("Do you want to continue?")
            .default(false)
            .interact_opt();
        self.answer(answer).map(|yes| yes.unwrap_or(false))
    }

    /// Asks for consent by typing `word`; `--yes` gives it.
    ///
    /// # Errors
    /// Another word; without a terminal, as [`Self::confirm`].
    pub(crate) fn confirm_by_name(&self, consequence: &str, word: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !self.can_ask() {
            return self.confirm(consequence).map(|_| ());
        }
        self.note(consequence);
        let typed = self.input(&format!("Type {word} to go on"), "", |_| Ok(()))?;
        if typed == word {
            return Ok(());
        }
        Err(Error::usage("cancelled; nothing was changed"))
    }

    /// A question that `--yes` does not answer, because it is about what is right.
    ///
    /// # Errors
    /// An interrupt, with the cursor shown again.
    pub(crate) fn agree(&self, prompt: &str) -> Result<bool> {
        let question = dialoguer::Confirm::new().with_prompt(prompt).default(true);
        self.answer(question.interact_opt())
            .map(|yes| yes.unwrap_or(false))
    }

    /// Lets the user choose one of `items`; `None` on Escape.
    ///
    /// # Errors
    /// An interrupt, with the cursor shown again.
    pub(crate) fn select(&self, prompt: &str, items: &[String]) -> Result<Option<usize>> {
        let items: Vec<String> = items.iter().map(|i| sanitise(i)).collect();
        let question = dialoguer::Select::new()
            .with_prompt(prompt)
            .items(&items)
            .default(0);
        self.answer(question.interact_opt())
    }

    /// Reads one line, checked by `check` at once.
    ///
    /// # Errors
    /// An interrupt, with the cursor shown again.
    pub(crate) fn input(
        &self,
        prompt: &str,
        default: &str,
        check: impl Fn(&str) -> Result<(), String>,
    ) -> Result<String> {
        let mut question = dialoguer::Input::<String>::new()
            .with_prompt(prompt)
            .allow_empty(true)
            .validate_with(|text: &String| check(text));
        if !default.is_empty() {
            question = question.default(default.to_owned());
        }
        self.answer(question.interact_text())
    }

    /// Lets the user pick one of `items`; `None` if there is nobody to ask, or on Escape.
    ///
    /// # Errors
    /// An interrupt, with the cursor shown again.
    pub(crate) fn pick(&self, prompt: &str, items: &[String]) -> Result<Option<usize>> {
        if !self.can_ask() || items.is_empty() {
            return Ok(None);
        }
        let items: Vec<String> = items.iter().map(|i| sanitise(i)).collect();
        let answer = dialoguer::FuzzySelect::new()
            .with_prompt(prompt)
            .items(&items)
            .default(0)
            .interact_opt();
        self.answer(answer)
    }

    /// Turns the end of a prompt into ours: on an interrupt the cursor comes back.
    fn answer<T>(&self, answer: Result<T, dialoguer::Error>) -> Result<T> {
        answer.map_err(|dialoguer::Error::IO(error)| {
            let _ = write!(std::io::stderr().lock(), "\u{1b}[?25h");
            if error.kind() == std::io::ErrorKind::Interrupted {
                self.note("");
                return Error::silent(Kind::Interrupted);
            }
            Error::from(error)
        })
    }
}

/// Writes a line to stderr before there is a [`Ui`].
pub(crate) fn stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", page(text));
}

/// Writes clap's help, version or usage error to the stream it belongs to.
pub(crate) fn usage(error: &clap::Error) -> u8 {
    let printed = match error.kind() {
        clap::error::ErrorKind::DisplayHelp => {
            let rendered = error.render();
            let color = std::io::stdout().is_terminal() && console::colors_enabled();
            let text = match color {
                true => rendered.ansi().to_string(),
                false => rendered.to_string(),
            };
            let text = grouped(&crate::cli::command(), &text);
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush())
        }
        _ => error.print(),
    };
    match printed {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => 141,
        _ if error.use_stderr() => 2,
        _ => 0,
    }
}
