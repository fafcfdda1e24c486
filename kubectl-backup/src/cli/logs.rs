//! Arguments of `logs`.

use clap::{Args, ValueEnum};

/// `logs`.
#[derive(Args, Debug)]
pub(crate) struct Logs {
    /// A run, or an object for its newest run
    #[arg(value_name = "RUN|TYPE/NAME")]
    pub(crate) name: Option<String>,
    /// Go on until the run has ended; waits for its container
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Newest lines to show; -1 for all
    #[arg(long, default_value_t = -1, allow_negative_numbers = true, value_name = "LINES")]
    pub(crate) tail: i64,
    /// The container's previous try
    #[arg(short, long)]
    pub(crate) previous: bool,
    /// Container; the backup program's if unset
    #[arg(short, long, value_name = "NAME")]
    pub(crate) container: Option<String>,
    /// How lines of the backup program are printed: text for people, json as it wrote them; unset is text on a terminal, else json
    #[arg(short, long, value_enum, ignore_case = true, value_name = "FORMAT")]
    pub(crate) output: Option<LogFormat>,
    /// Put the time in front of each line
    #[arg(long)]
    pub(crate) timestamps: bool,
}

/// `-o` of `logs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of words for each of the program's
    Text,
    /// As the program wrote them
    Json,
}
