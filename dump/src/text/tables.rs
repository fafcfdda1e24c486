//! Tables and sequences, and what stands around their rows.

use crate::parts::{Database, Options, Server, Table, TableKind};
use crate::sql::{name, without_next};
use crate::text::in_line;

/// What makes a table or a sequence.
pub(super) fn definition(
    _server: &Server,
    options: &Options,
    database: &Database,
    table: &Table,
) -> Vec<u8> {
    let quoted = name(&table.name);
    let mut text = vec![];
    if table.kind == TableKind::Sequence {
        title(&mut text, "Sequence structure for", &table.name);
        text.extend_from_slice(format!("DROP SEQUENCE IF EXISTS {quoted};\n").as_bytes());
        text.extend_from_slice(&table.create);
        text.extend_from_slice(format!(";\n{};\n\n", table.next).as_bytes());
        return text;
    }
    title(&mut text, "Table structure for table", &table.name);
    text.extend_from_slice(format!("DROP TABLE IF EXISTS {quoted};\n").as_bytes());
    // An ARCHIVE table takes no row that comes before its next value.
    let create = if table.engine.eq_ignore_ascii_case("ARCHIVE") {
        without_next(&table.create)
    } else {
        table.create.clone()
    };
    if options.bare {
        text.extend_from_slice(&unqualified(&create, &database.name));
    } else {
        text.extend_from_slice(&create);
    }
    text.extend_from_slice(b";\n\n");
    text
}

/// What stands before the rows of a table, after `USE` of its database.
#[must_use]
pub fn data_head(table: &Table) -> Vec<u8> {
    let mut text = vec![];
    title(&mut text, "Dumping data for table", &table.name);
    if table.versioned {
        text.extend_from_slice(b"/*M!101100 SET @old_system_versioning_insert_history=@@session.system_versioning_insert_history, @@session.system_versioning_insert_history=1 */;\n");
    }
    if table.kind == TableKind::NotTransactional {
        let quoted = name(&table.name);
        text.extend_from_slice(
            format!("/*!40000 ALTER TABLE {quoted} DISABLE KEYS */;\n").as_bytes(),
        );
    }
    text
}

/// What stands after them.
#[must_use]
pub fn data_foot(table: &Table) -> Vec<u8> {
    let mut text = vec![];
    if table.kind == TableKind::NotTransactional {
        let quoted = name(&table.name);
        text.extend_from_slice(
            format!("/*!40000 ALTER TABLE {quoted} ENABLE KEYS */;\n").as_bytes(),
        );
    }
    if table.versioned {
        text.extend_from_slice(b"/*M!101100 SET system_versioning_insert_history=@old_system_versioning_insert_history */;\n");
    }
    text.push(b'\n');
    text
}

/// A heading.
pub(super) fn title(text: &mut Vec<u8>, what: &str, of: &str) {
    let line = format!("--\n-- {what} `{}`\n--\n\n", in_line(of));
    text.extend_from_slice(line.as_bytes());
}

/// A definition whose sequences are of its own database, whatever that is called: `` nextval(`shop`.`s`) ``.
fn unqualified(create: &[u8], database: &str) -> Vec<u8> {
    let qualified = format!("val({}.", name(database));
    let mut text = vec![];
    let mut rest = create;
    while let Some(at) = memchr::memmem::find(rest, qualified.as_bytes()) {
        let end = at + "val(".len();
        text.extend_from_slice(&rest[..end]);
        rest = if is_code(create, create.len() - rest.len() + at) {
            &rest[at + qualified.len()..]
        } else {
            &rest[end..]
        };
    }
    text.extend_from_slice(rest);
    text
}

/// This place of a definition is in no quotes.
fn is_code(create: &[u8], place: usize) -> bool {
    let mut quote = None;
    let mut bytes = create[..place].iter();
    while let Some(byte) = bytes.next() {
        match quote {
            None if [b'\'', b'`', b'"'].contains(byte) => quote = Some(*byte),
            None => {}
            Some(b'\'') if *byte == b'\\' => {
                bytes.next();
            }
            Some(q) if q == *byte => quote = None,
            Some(_) => {}
        }
    }
    quote.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_dump_draws_from_its_own_sequences() {
        let create = "`id` int DEFAULT nextval(`sh``op`.`s`) COMMENT 'nextval(`sh``op`.`s`)', x DEFAULT nextval(`other`.`s`), y DEFAULT lastval(`sh``op`.`t`)";
        let text = unqualified(create.as_bytes(), "sh`op");
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "`id` int DEFAULT nextval(`s`) COMMENT 'nextval(`sh``op`.`s`)', x DEFAULT nextval(`other`.`s`), y DEFAULT lastval(`t`)"
        );
    }
}
