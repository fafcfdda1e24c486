//! Views in an order in which each finds those that it reads. PURE.

use std::collections::HashMap;

use crate::parts::Object;

/// Views, those that others read first; otherwise as they came. Where they read each other in a circle, the first comes first.
pub(super) fn by_need(views: Vec<Object>) -> Vec<Object> {
    let numbers: HashMap<Vec<u8>, usize> = views
        .iter()
        .enumerate()
        .map(|(n, view)| (view.name.clone().into_bytes(), n))
        .collect();
    let needs: Vec<Vec<usize>> = views
        .iter()
        .map(|view| {
            let names = names(&view.create).into_iter();
            names.filter_map(|n| numbers.get(&n).copied()).collect()
        })
        .collect();
    let (mut order, mut met) = (vec![], vec![false; views.len()]);
    for first in 0..views.len() {
        // Each with the needs that are still to be looked at; no recursion, as views are others' to make.
        let mut way = vec![(first, 0)];
        while let Some((view, at)) = way.pop() {
            if at == 0 && std::mem::replace(&mut met[view], true) {
                continue;
            }
            match needs[view].get(at) {
                Some(need) => way.extend([(view, at + 1), (*need, 0)]),
                None => order.push(view),
            }
        }
    }
    let mut views: Vec<Option<Object>> = views.into_iter().map(Some).collect();
    let taken = order.into_iter().filter_map(|n| views[n].take());
    taken.collect()
}

/// What stands between backquotes.
fn names(text: &[u8]) -> Vec<Vec<u8>> {
    let (mut all, mut rest) = (vec![], text);
    while let Some(open) = memchr::memchr(b'`', rest) {
        let mut name = vec![];
        rest = &rest[open + 1..];
        while let Some(close) = memchr::memchr(b'`', rest) {
            name.extend_from_slice(&rest[..close]);
            rest = &rest[close + 1..];
            if rest.first() != Some(&b'`') {
                break;
            }
            name.push(b'`');
            rest = &rest[1..];
        }
        all.push(name);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(views: &[(&str, &str)]) -> String {
        let made = views.iter().map(|(name, create)| Object {
            name: (*name).to_owned(),
            create: create.as_bytes().to_vec(),
            ..Object::default()
        });
        let names = by_need(made.collect()).into_iter().map(|v| v.name);
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_a_view_reads_comes_before_it() {
        assert_eq!(
            ordered(&[
                ("a", "from `z`"),
                ("b", "`t`"),
                ("z", "from `y``x`"),
                ("y`x", "")
            ]),
            "y`x z a b"
        );
        assert_eq!(
            ordered(&[("a", "`a` from `b`"), ("b", "from `a`"), ("c", "")]),
            "b a c"
        );
        assert_eq!(
            ordered(&[("a", "`b` `c`"), ("b", "`c`"), ("c", "`")]),
            "c b a"
        );
    }
}
