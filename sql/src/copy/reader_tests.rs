//! The formats: rows that are written are read again, in any pieces; errors are PostgreSQL's.

use bytes::BytesMut;
use proptest::prelude::*;

use super::options::CopyOptions;
use super::reader::CopyReader;
use super::statement::parse;
use super::writer::CopyWriter;

/// A row of fields.
type Fields = Vec<Option<Vec<u8>>>;

fn options(text: &str) -> CopyOptions {
    CopyOptions::of(&parse(text).unwrap().unwrap()).unwrap()
}

fn reader(text: &str, columns: &[&str]) -> CopyReader {
    CopyReader::new(options(text), columns.iter().map(|name| ((*name).to_owned(), false, false)))
}

/// All rows of data that comes in pieces, and the error after them with its place.
fn read(mut reader: CopyReader, pieces: &[&[u8]]) -> (Vec<Fields>, Option<String>) {
    let mut rows = Vec::new();
    for at in 0..=pieces.len() {
        match pieces.get(at) {
            Some(piece) => reader.push(piece),
            None => reader.finish(),
        }
        loop {
            match reader.next() {
                Ok(Some(row)) => rows.push(row.iter().map(|field| field.map(<[u8]>::to_vec)).collect()),
                Ok(None) => break,
                Err(error) => {
                    let place = reader.place(None).unwrap_or_else(|| "nowhere".to_owned());
                    return (rows, Some(format!("{} {} | {}", error.code.0, error.message, place)));
                }
            }
        }
    }
    (rows, None)
}

/// The rows in words. The data comes at once, in two pieces split at each byte, and byte by byte.
fn show(statement: &str, columns: &[&str], data: &[u8]) -> String {
    let whole = read(reader(statement, columns), &[data]);
    for at in 0..=data.len() {
        let (head, tail) = data.split_at(at);
        assert_eq!(read(reader(statement, columns), &[head, tail]), whole, "split at {at}");
    }
    let bytes: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(read(reader(statement, columns), &bytes), whole, "byte by byte");
    let (rows, error) = whole;
    let field = |field: &Option<Vec<u8>>| match field {
        None => "NULL".to_owned(),
        Some(bytes) => format!("[{}]", bytes.escape_ascii()),
    };
    let rows = rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join(" "));
    rows.chain(error.map(|error| format!("! {error}"))).collect::<Vec<_>>().join("; ")
}

const TEXT: &str = "copy t from stdin";
const CSV: &str = "copy t from stdin csv";
const TWO: &[&str] = &["a", "b"];

#[test]
fn text_rows() {
    for (data, rows) in [
        (&b""[..], ""),
        (b"1\tx\n2\t\\N\n", "[1] [x]; [2] NULL"),
        (b"1\tx\n2\ty", "[1] [x]; [2] [y]"),
        (b"1\tx\r\n2\ty\r\n", "[1] [x]; [2] [y]"),
        (b"1\tx\r2\ty\r", "[1] [x]; [2] [y]"),
        (b"\t\n", "[] []"),
        (b"a\\tb\tc\\nd\\\\e\n", "[a\\tb] [c\\nd\\\\e]"),
        (b"\\101\\x41\\x4\\18\t\\N\\N\n", "[AA\\x04\\x018] [NN]"),
        (b"a\\\tb\tc\\\nd\n", "[a\\tb] [c\\nd]"),
        (b"\xc3\xa9\t\\303\\251\n", "[\\xc3\\xa9] [\\xc3\\xa9]"),
        (b"\\q.\t\\x\\b\\f\\v\\r\n", "[q.] [x\\x08\\x0c\\x0b\\r]"),
        (b"\\q\\.\t1\n", "! 22P04 end-of-copy marker corrupt | line 1"),
        (b"1\tx\n\\.\n2\ty\n", "[1] [x]"),
        (b"1\tx\\.\n2\ty\n", "[1] [x]"),
        (b"1\tx\n2\ty\\", "[1] [x]; [2] [y]"),
        (b"1\tx\n2\n", "[1] [x]; ! 22P04 missing data for column \"b\" | line 2: \"2\""),
        (b"1\tx\ty\n", "! 22P04 extra data after last expected column | line 1: \"1\tx\ty\""),
        (b"1\tx\n\n", "[1] [x]; ! 22P04 missing data for column \"b\" | line 2: \"\""),
        (b"1\tx\n2\ty\r\n", "[1] [x]; ! 22P04 literal carriage return found in data | line 2"),
        (b"1\tx\r\n2\ty\n", "[1] [x]; ! 22P04 literal newline found in data | line 2"),
        (b"1\tx\n\\.x\n", "[1] [x]; ! 22P04 end-of-copy marker corrupt | line 2"),
        (b"1\tx\n\\.", "[1] [x]; ! 22P04 end-of-copy marker corrupt | line 2"),
        (b"1\tx\n\\.\r\n", "[1] [x]; ! 22P04 end-of-copy marker does not match previous newline style | line 2"),
        (b"1\tx\r\n\\.\r\n3", "[1] [x]"),
        (b"1\t\xff\n", "! 22021 invalid byte sequence for encoding \"UTF8\": 0xff | line 1"),
        (b"1\t\\377\n", "! 22021 invalid byte sequence for encoding \"UTF8\": 0xff | line 1: \"1\t\\377\""),
        (b"1\t\\0\n", "! 22021 invalid byte sequence for encoding \"UTF8\": 0x00 | line 1: \"1\t\\0\""),
    ] {
        assert_eq!(show(TEXT, TWO, data), rows, "{}", data.escape_ascii());
    }
    assert_eq!(show(TEXT, &[], b"\n\nx\n"), "; ; ! 22P04 extra data after last expected column | line 3: \"x\"");
    assert_eq!(show("copy t from stdin (delimiter '|', null '-')", TWO, b"-|\\-\n"), "NULL [-]");
    assert_eq!(show("copy t from stdin (header)", TWO, b"zz\n1\t2\n"), "[1] [2]");
}

#[test]
fn csv_rows() {
    for (data, rows) in [
        (&b"1,x\n2,\n3,\"\"\n"[..], "[1] [x]; [2] NULL; [3] []"),
        (b"\"a,b\",\"c\"\"d\"\n", "[a,b] [c\\\"d]"),
        (b"\"a\nb\",x\n\"c\r\nd\",y\n", "[a\\nb] [x]; [c\\r\\nd] [y]"),
        (b"a\"b\"c,\"d\"e\n", "[abc] [de]"),
        (b"1,\\.\n2,x\n", "[1] [\\\\.]; [2] [x]"),
        (b"1,x\n\\.\n2,y\n", "[1] [x]"),
        (b"1,x\r\n\\.\r\n2,y\n", "[1] [x]"),
        (b"\\,x\n", "[\\\\] [x]"),
        (b"1,\"x\n2,y\n", "! 22P04 unterminated CSV quoted field | line 1: \"1,\"x\n2,y\n\""),
        (b"0,0\n1,\"x\n2,y\n", "[0] [0]; ! 22P04 unterminated CSV quoted field | line 4: \"1,\"x\n2,y\n\""),
        (b"1,x\n2\n", "[1] [x]; ! 22P04 missing data for column \"b\" | line 2: \"2\""),
        (b"1,x,y\n", "! 22P04 extra data after last expected column | line 1: \"1,x,y\""),
        (b"1,x\n2,y\r\n", "[1] [x]; ! 22P04 unquoted carriage return found in data | line 2"),
        (b"1,x\r\n2,y\n", "[1] [x]; ! 22P04 unquoted newline found in data | line 2"),
    ] {
        assert_eq!(show(CSV, TWO, data), rows, "{}", data.escape_ascii());
    }
    let escaped = "copy t from stdin (format csv, quote '''', escape '\\')";
    assert_eq!(show(escaped, TWO, b"'a\\'b\\\\',x\n"), "[a\\'b\\\\] [x]");
    assert_eq!(show(escaped, TWO, b"'a\\\\',x\n'\\'\n',y\n"), "[a\\\\] [x]; [\\'\\n] [y]");
    let header = "copy t from stdin (format csv, header match)";
    assert_eq!(show(header, TWO, b"a,b\n1,2\n"), "[1] [2]");
    for (line, error) in [
        ("a", "wrong number of fields in header line: got 1, expected 2"),
        ("a,c", "column name mismatch in header line field 2: got \"c\", expected \"b\""),
        ("a,", "column name mismatch in header line field 2: got null value (\"\"), expected \"b\""),
    ] {
        let data = format!("{line}\n1,2\n");
        assert_eq!(show(header, TWO, data.as_bytes()), format!("! 22P04 {error} | line 1: \"{line}\""));
    }
}

#[test]
fn forced_columns_of_csv() {
    let columns = || [("a".to_owned(), true, false), ("b".to_owned(), false, true)].into_iter();
    let (rows, _) = read(CopyReader::new(options(CSV), columns()), &[b",\"\"\n"]);
    assert_eq!(rows, [[Some(Vec::new()), None]]);
    let with_null = "copy t from stdin (format csv, null 'x')";
    let (rows, _) = read(CopyReader::new(options(with_null), columns()), &[b"x,\"x\"\nx,x\n"]);
    assert_eq!(rows, [[Some(b"x".to_vec()), None], [Some(b"x".to_vec()), None]]);
}

#[test]
fn binary_rows() {
    let with = |rest: &[u8]| [b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", rest].concat();
    let binary = "copy t from stdin (format binary)";
    let row = b"\0\x02\0\0\0\x01x\xff\xff\xff\xff";
    let trailer = b"\xff\xff";
    let early = "! 22P04 unexpected EOF in COPY data | line 2, column b";
    for (data, rows) in [
        (with(trailer), String::new()),
        (with(b""), String::new()),
        (with(&[&row[..], trailer].concat()), "[x] NULL".to_owned()),
        (with(row), "[x] NULL".to_owned()),
        (with(&[&row[..], &row[..8]].concat()), format!("[x] NULL; {early}")),
        (
            with(&[&row[..], trailer, b"x"].concat()),
            "[x] NULL; ! 22P04 received copy data after EOF marker | line 2".to_owned(),
        ),
        (with(b"\0\x03"), "! 22P04 row field count is 3, expected 2 | line 1".to_owned()),
        (with(b"\0\x02\xff\xff\xff\xfe"), "! 22P04 invalid field size | line 1, column a".to_owned()),
        (b"PGCOPX".to_vec(), "! 22P04 COPY file signature not recognized | nowhere".to_owned()),
        (b"PGCOPY\n\xff\r\n\0\0".to_vec(), "! 22P04 invalid COPY file header (missing flags) | nowhere".to_owned()),
        (
            b"PGCOPY\n\xff\r\n\0\0\x01\0\0\0\0\0\0".to_vec(),
            "! 22P04 invalid COPY file header (WITH OIDS) | nowhere".to_owned(),
        ),
        (
            b"PGCOPY\n\xff\r\n\0\0\x02\0\0\0\0\0\0".to_vec(),
            "! 22P04 unrecognized critical flags in COPY file header | nowhere".to_owned(),
        ),
        (
            b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\x02x".to_vec(),
            "! 22P04 invalid COPY file header (wrong length) | nowhere".to_owned(),
        ),
        (b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\x02xx\xff\xff".to_vec(), String::new()),
    ] {
        assert_eq!(show(binary, TWO, &data), rows, "{}", data.escape_ascii());
    }
}

#[test]
fn long_values_are_cut_off_in_errors() {
    let line = format!("{}é", "x".repeat(99));
    let (_, error) = read(reader(TEXT, TWO), &[line.as_bytes()]);
    let expected = format!("22P04 missing data for column \"b\" | line 1: \"{}...\"", "x".repeat(99));
    assert_eq!(error, Some(expected));
}

#[test]
fn written_fields() {
    let write = |statement: &str, quoted: &[bool], rows: &[&[Option<&str>]]| {
        let writer = CopyWriter::new(options(statement), quoted.to_vec());
        let mut out = BytesMut::new();
        writer.begin(TWO.iter().copied().take(quoted.len()), &mut out);
        for row in rows {
            writer.begin_row(&mut out);
            row.iter().enumerate().for_each(|(at, field)| writer.field(at, field.map(str::as_bytes), &mut out));
            writer.end_row(&mut out);
        }
        writer.end(&mut out);
        out.escape_ascii().to_string()
    };
    let rows: &[&[Option<&str>]] = &[&[Some("a\tb\\\n\x08\x0b\x0c\r"), None], &[Some(""), Some("\x01é")]];
    let plain = "a\\\\tb\\\\\\\\\\\\n\\\\b\\\\v\\\\f\\\\r\\t\\\\N\\n\\t\\x01\\xc3\\xa9\\n";
    assert_eq!(write("copy t to stdout", &[false, false], rows), plain);
    let csv = &[&[Some("a\"b"), Some("c,d")][..], &[Some(""), None], &[Some("x"), Some("y\n")]];
    let expected = "\\\"a\\\"\\\"b\\\",\\\"c,d\\\"\\n\\\"\\\",\\nx,\\\"y\\n\\\"\\n";
    assert_eq!(write("copy t to stdout csv", &[false, false], csv), expected);
    let forced = "a,b\\n\\\"x\\\",\\n";
    assert_eq!(write("copy t to stdout csv header", &[true, true], &[&[Some("x"), None]]), forced);
    assert_eq!(write("copy t to stdout csv", &[false], &[&[Some("\\.")]]), "\\\"\\\\.\\\"\\n");
    assert_eq!(write("copy t to stdout csv", &[false, false], &[&[Some("\\."), None]]), "\\\\.,\\n");
    let header = "PGCOPY\\n\\xff\\r\\n\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00";
    let binary = write("copy t to stdout (format binary)", &[false], &[&[Some("x")]]);
    assert_eq!(binary, format!("{header}\\x00\\x01\\x00\\x00\\x00\\x01x\\xff\\xff"));
}

/// Values with all that the formats treat in some way.
const VALUES: &str = "[ -~\\n\\r\\t\\\\é\"';|,.n]{0,12}";

/// Statements to read and to write, with options that go together.
const ROUND_TRIPS: &[(&str, &str)] = &[
    ("copy t from stdin", "copy t to stdout"),
    ("copy t from stdin (delimiter '|', null '\\-')", "copy t to stdout (delimiter '|', null '\\-')"),
    ("copy t from stdin csv header", "copy t to stdout csv header"),
    ("copy t from stdin csv", "copy t to stdout csv force quote *"),
    (
        "copy t from stdin (format csv, quote '''', escape '\\', delimiter ';', null 'n', header match)",
        "copy t to stdout (format csv, quote '''', escape '\\', delimiter ';', null 'n', header)",
    ),
    ("copy t from stdin (format binary)", "copy t to stdout (format binary)"),
];

proptest! {
    #[test]
    fn what_is_written_is_read_again_in_any_pieces(
        rows in prop::collection::vec(prop::collection::vec(prop::option::of(VALUES), 2), 0..6),
        at in 0..ROUND_TRIPS.len(),
        cuts in prop::collection::vec(0usize..200, 0..8),
    ) {
        let (from, to) = ROUND_TRIPS[at];
        let writer = CopyWriter::new(options(to), vec![false, false]);
        let mut data = BytesMut::new();
        writer.begin(TWO.iter().copied(), &mut data);
        for row in &rows {
            writer.begin_row(&mut data);
            for (at, field) in row.iter().enumerate() {
                writer.field(at, field.as_deref().map(str::as_bytes), &mut data);
            }
            writer.end_row(&mut data);
        }
        writer.end(&mut data);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(data.len())).collect();
        cuts.extend([0, data.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &data[cut[0]..cut[1]]).collect();
        let (read, error) = read(reader(from, TWO), &pieces);
        prop_assert_eq!(error, None);
        let expected: Vec<Fields> =
            rows.iter().map(|row| row.iter().map(|field| field.clone().map(String::into_bytes)).collect()).collect();
        prop_assert_eq!(read, expected);
    }

    /// Whatever the bytes are, the pieces in which they come make no difference, and nothing panics.
    #[test]
    fn pieces_make_no_difference(
        data in prop::collection::vec(prop::sample::select(&b"a1,\t\"\\.\r\n\xc3\xa9N'x0\xff"[..]), 0..40),
        at in 0..ROUND_TRIPS.len(),
        cut in 0usize..40,
    ) {
        let (from, _) = ROUND_TRIPS[at];
        let whole = read(reader(from, TWO), &[&data]);
        let (head, tail) = data.split_at(cut.min(data.len()));
        prop_assert_eq!(read(reader(from, TWO), &[head, tail]), whole.clone());
        let bytes: Vec<&[u8]> = data.chunks(1).collect();
        prop_assert_eq!(read(reader(from, TWO), &bytes), whole);
    }
}
