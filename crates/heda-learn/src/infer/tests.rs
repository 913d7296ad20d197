use super::*;
use crate::bundled::{Bundle, Coding};
use crate::schema::{Kind, Missing};

const SAMPLE: &str = "patient,age,smoker,note,centre,outcome\n\
    P1,30,yes,a\u{1}b,x,ill\nP2,?,no,c,x,well\nP3,45.5,NA,d,x,well\n";

fn proposal(text: &str, label: Option<&str>) -> Result<String, ReadError> {
    propose_csv(text.as_bytes(), "ward", label).map(|proposal| proposal.text)
}

#[test]
fn proposes_what_the_file_shows_and_marks_it() {
    let text = proposal(SAMPLE, None).unwrap();
    let schema = Schema::parse(&text, "ward.toml").unwrap();
    assert_eq!(schema.name(), "ward");
    assert_eq!(schema.label().column(), "outcome");
    assert_eq!(schema.label().classes(), ["ill", "well"]);
    assert_eq!(schema.missing_markers(), ["?", "NA"]);
    assert_eq!(schema.ignore(), ["note", "centre"]);
    let names: Vec<_> = schema.columns().iter().map(|c| c.name()).collect();
    assert_eq!(names, ["patient", "age", "smoker"]);
    let private = text.lines().filter(|line| {
        ["bounds", "levels", "classes", "missing =", "positive"]
            .iter()
            .any(|w| line.starts_with(w))
    });
    assert!(
        private.into_iter().all(|line| line.contains(MARK)),
        "{text}"
    );
}

#[test]
fn a_proposal_reads_the_file_it_was_made_from() {
    for bundle in Bundle::ALL {
        let proposal = propose_csv(bundle.csv(), bundle.name(), None).unwrap();
        let reader = proposal.reader(CsvFormat::default());
        let (data, report) = reader.read_csv(bundle.csv(), "x").unwrap();
        let expected = bundle.table(Coding::Natural).unwrap().0;
        assert_eq!(data.rows(), expected.rows(), "{bundle}");
        assert_eq!(data.features().len(), expected.features().len(), "{bundle}");
        assert_eq!(report.rows_dropped, 0);
    }
}

#[test]
fn numbers_and_categories_are_told_apart() {
    let schema = propose_csv(Bundle::Adult.csv(), "adult", Some("sex"));
    let schema = schema.unwrap().schema;
    assert_eq!(schema.label().column(), "sex");
    let column = |name| schema.columns().iter().find(|c| c.name() == name).unwrap();
    let Kind::Numeric { bounds, .. } = column("fnlwgt").kind() else {
        panic!("fnlwgt is a number");
    };
    assert_eq!((bounds.lower(), bounds.upper()), (12_285.0, 1_484_705.0));
    assert!(matches!(column("workclass").missing(), Missing::Value(_)));
    assert_eq!(column("education").levels().unwrap().len(), 16);
}

#[test]
fn identifiers_are_suspected() {
    let rows: String = (0..30)
        .map(|i| format!("{i},Name {i},{}\n", i % 2))
        .collect();
    let text = proposal(&format!("number,name,class\n{rows}"), None).unwrap();
    assert!(
        text.contains("\"number\" # CONFIRM: every value differs"),
        "{text}"
    );
    assert!(
        text.contains("\"name\", # CONFIRM: every text differs"),
        "{text}"
    );
    assert!(!text.contains("Name 7"), "{text}");
    let rows: String = (0..200)
        .map(|i| format!("{i},Name {i},{}\n", i % 2))
        .collect();
    let text = proposal(&format!("number,name,class\n{rows}"), None).unwrap();
    assert!(text.contains("    \"name\", # CONFIRM: too many"), "{text}");
}

#[test]
fn refuses_what_cannot_be_a_label() {
    let fault = |text: &str, label| proposal(text, label).unwrap_err().fault().clone();
    assert_eq!(fault(SAMPLE, Some("dose")), ReadFault::MissingColumn);
    assert_eq!(
        fault(SAMPLE, Some("centre")),
        ReadFault::OneClass("x".into())
    );
    assert_eq!(fault("", None), ReadFault::Empty);
    assert_eq!(fault("a,b\n", None), ReadFault::Empty);
    assert_eq!(fault("a,b\n1,?\n2,?\n", None), ReadFault::Missing);
    assert!(matches!(
        fault("a,b\n1,x\n1,y\n", None),
        ReadFault::NoProposal(_)
    ));
    let many: String = (0..200).map(|i| format!("{i},x{i}\n")).collect();
    let found = fault(&format!("a,b\n{many}"), None);
    assert_eq!(found, ReadFault::TooManyClasses(MAX_PROPOSED_LEVELS));
}

#[test]
fn a_label_of_many_numbers_is_a_number() {
    let rows = |label: fn(usize) -> String, count: usize| {
        let rows = (0..count).map(|i| format!("{},{}\n", i % 7, label(i)));
        format!("a,y\n{}", rows.collect::<String>())
    };
    let number = |text: &str| {
        let text = proposal(text, None).unwrap();
        let schema = Schema::parse(&text, "x").unwrap();
        schema.label().number().copied()
    };
    let found = number(&rows(|i| format!("{}.5", i % 12), 40)).unwrap();
    assert_eq!((found.bounds.lower(), found.bounds.upper()), (0.5, 11.5));
    assert!(number(&rows(|i| (10 * i).to_string(), 40)).is_some());
    // Few different ones, or few different whole ones, are classes.
    assert!(number(&rows(|i| format!("{}.5", i % 3), 40)).is_none());
    assert!(number(&rows(|i| (i % 26).to_string(), 60)).is_none());
}

#[test]
fn strange_names_are_quoted() {
    let text = proposal("a \"b\" \\,#x,y=[\n1,2,u\n3,4,v\n", None).unwrap();
    let schema = Schema::parse(&text, "x").unwrap();
    let names: Vec<_> = schema.columns().iter().map(|c| c.name()).collect();
    assert_eq!(names, ["a \"b\" \\", "#x"]);
}

/// Twenty rows of a column, and a class.
fn column(cells: impl Fn(usize) -> String) -> String {
    let rows: String = (0..40)
        .map(|i| format!("{},{}\n", cells(i), if i % 2 == 0 { "a" } else { "b" }))
        .collect();
    format!("x,class\n{rows}")
}

#[test]
fn texts_among_numbers_are_proposed_as_missing() {
    let text = proposal(
        &column(|i| match i {
            3 => "<0.5".into(),
            4 => "-".into(),
            5 => "nan".into(),
            7 => "unclear".into(),
            _ => format!("{}.5", i),
        }),
        None,
    )
    .unwrap();
    let schema = Schema::parse(&text, "x").unwrap();
    assert_eq!(schema.missing_markers(), ["-", "<0.5", "nan", "unclear"]);
    assert!(text.contains("missing = { value = 21.5 }"), "{text}");
    // A dash that is a class is none of a number's markers.
    let row = |i: usize| {
        let x = if i == 3 { "-".into() } else { i.to_string() };
        format!("{}.5,{x},{}\n", i % 7, ["+", "-"][i % 2])
    };
    let rows: String = (0..40).map(row).collect();
    let text = proposal(&format!("z,x,class\n{rows}"), None).unwrap();
    assert!(
        text.contains("\"x\", # CONFIRM: its texts among numbers"),
        "{text}"
    );
    // Levels that begin with digits are no numbers.
    let text = proposal(&column(|i| ["2", "3", "4", "5more"][i % 4].into()), None).unwrap();
    assert!(
        text.contains("levels = [\"2\", \"3\", \"4\", \"5more\"]"),
        "{text}"
    );
}

#[test]
fn few_whole_numbers_are_asked_about() {
    let text = proposal(&column(|i| (i % 4 + 1).to_string()), None).unwrap();
    let question = "kind = \"numeric\" # CONFIRM: a number? for a code write \
                    kind = \"categorical\" and levels = [\"1\", \"2\", \"3\", \"4\"]";
    assert!(text.contains(question), "{text}");
    let text = proposal(&column(|i| (i % 2).to_string()), None).unwrap();
    assert!(!text.contains("for a code"), "two values need no levels");
}

#[test]
fn dates_become_days() {
    let cells = |i: usize| match i {
        0 => "?".into(),
        _ => format!("2024-{:02}-15 1{}:30", 1 + i % 12, i % 10),
    };
    let text = proposal(&column(cells), None).unwrap();
    assert!(text.contains("kind = \"date\"\n"), "{text}");
    assert!(
        text.contains("bounds = [\"2024-01-15\", \"2024-12-16\"]"),
        "{text}"
    );
    let schema = Schema::parse(&text, "x").unwrap();
    let reader = crate::table::TableReader::new(&schema);
    let (data, report) = reader.read_csv(column(cells).as_bytes(), "x").unwrap();
    assert_eq!(
        (report.columns[0].missing, report.columns[0].clipped),
        (1, 0)
    );
    assert_eq!(data.rows(), 40);
}

#[test]
fn a_label_with_a_usual_name_is_found() {
    let schema = |label| propose_csv("Target,x,z\nu,1,5\nv,2,6\n".as_bytes(), "t", label);
    let found = schema(None).unwrap();
    assert_eq!(found.schema.label().column(), "Target");
    assert!(found.assumptions[0].starts_with("label: Target (a guess), classes u, v"));
    assert_eq!(schema(Some("z")).unwrap().schema.label().column(), "z");
}

#[test]
fn marks_are_counted_until_they_are_deleted() {
    let text = proposal(SAMPLE, None).unwrap();
    assert_eq!(unconfirmed(&text), text.matches("CONFIRM:").count());
    assert!(unconfirmed(&text) > 5);
    let confirmed: String = text
        .lines()
        .map(|line| format!("{}\n", line.split(" # CONFIRM").next().unwrap()))
        .collect();
    assert_eq!(unconfirmed(&confirmed), 0, "{confirmed}");
    assert_eq!(unconfirmed("name = \"CONFIRM: no comment\""), 0);
}

#[test]
fn columns_in_memory_are_proposed_for_too() {
    use crate::table::{Columns, TableReader, Values};
    let texts = |texts: &[&str]| Values::Texts(texts.iter().map(|t| Some((*t).into())).collect());
    let columns = Columns::new()
        .with("age", Values::Numbers(vec![20.0, f64::NAN, 40.0]))
        .with("ill", texts(&["no", "yes", "no"]));
    let proposal = propose_columns(&columns, "memory", None).unwrap();
    let reader = TableReader::new(&proposal.schema);
    let (data, _) = reader.read_columns(&columns, "memory").unwrap();
    assert_eq!(
        data.values(),
        [0.0, 0.0, 1.0],
        "the median is the lower one"
    );
}
