//! `kubectl backup` alone: how many there are, what is wrong, what comes next.

use std::collections::BTreeMap;

use crds::verdict::{Reason, State};

use crate::cluster::Query;
use crate::context::Context;
use crate::error::Result;
use crate::kind::KINDS;
use crate::text::counted;
use crate::view::list::rows;

/// `kubectl backup` alone: how many there are, what is wrong, what comes next.
///
/// # Errors
/// What the server refused.
pub(crate) async fn run(context: &Context) -> Result<()> {
    let cluster = context.cluster().await?;
    let query = Query {
        namespace: Some(cluster.namespace.clone()),
        chunk: 500,
        ..Query::default()
    };
    let (tables, hidden) = cluster.readable_tables(&KINDS, &query).await?;
    context.left_out(&hidden);
    let all: Vec<_> = tables
        .iter()
        .flat_map(|(kind, table)| rows(kind, table, context.now()))
        .collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &all {
        *counts.entry(row.status).or_default() += 1;
    }
    let bad: Vec<String> = all
        .iter()
        .filter(|r| r.verdict.0 > State::Unknown)
        .map(|r| format!("{} ({})", r.name, r.verdict.1.as_str()))
        .collect();
    let counts: Vec<String> = counts
        .iter()
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    let namespace = &cluster.namespace;
    let mut text = format!(
        "{} in {namespace} namespace",
        counted(all.len(), "backup object")
    );
    if !counts.is_empty() {
        text.push_str(&format!(": {}", counts.join(", ")));
    }
    text.push('\n');
    if !bad.is_empty() {
        text.push_str(&format!("Not good: {}\n", bad.join(", ")));
    }
    let mut next: Vec<_> = all
        .iter()
        .filter(|r| r.verdict.1 != Reason::Overdue)
        .filter_map(|r| r.next.map(|at| (at, &r.name)))
        .collect();
    next.sort();
    for (at, name) in next.iter().take(3) {
        let when = crate::view::duration::until(*at, context.now());
        text.push_str(&format!("Next: {name} {when}\n"));
    }
    context.ui.out(&text)?;
    context.ui.hint("kubectl backup --help shows the verbs");
    Ok(())
}
