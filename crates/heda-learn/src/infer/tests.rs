use super::*;
use crate::bundled::{Bundle, Coding};
use crate::schema::{Kind, Missing};
use crate::table::TableReader;

const SAMPLE: &str = "patient,age,smoker,note,centre,outcome\n\
    P1,30,yes,a\u{1}b,x,ill\nP2,?,no,c,x,well\nP3,45.5,NA,d,x,well\n";

fn proposal(text: &str, label: Option<&str>) -> Result<String, ReadError> {
    propose_csv(text.as_bytes(), "ward", label)
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
        let text = propose_csv(bundle.csv(), bundle.name(), None).unwrap();
        let schema = Schema::parse(&text, "proposal").unwrap();
        let (data, report) = TableReader::new(&schema)
            .read_csv(bundle.csv(), "x")
            .unwrap();
        let expected = bundle.table(Coding::Natural).unwrap().0;
        assert_eq!(data.rows(), expected.rows(), "{bundle}");
        assert_eq!(data.features().len(), expected.features().len(), "{bundle}");
        assert_eq!(report.rows_dropped, 0);
    }
}

#[test]
fn numbers_and_categories_are_told_apart() {
    let text = propose_csv(Bundle::Adult.csv(), "adult", Some("sex")).unwrap();
    let schema = Schema::parse(&text, "adult").unwrap();
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
    let many: String = (0..200).map(|i| format!("{i},{i}\n")).collect();
    let found = fault(&format!("a,b\n{many}"), None);
    assert_eq!(found, ReadFault::TooManyClasses(MAX_PROPOSED_LEVELS));
}

#[test]
fn strange_names_are_quoted() {
    let text = proposal("a \"b\" \\,#x,y=[\n1,2,u\n3,4,v\n", None).unwrap();
    let schema = Schema::parse(&text, "x").unwrap();
    let names: Vec<_> = schema.columns().iter().map(|c| c.name()).collect();
    assert_eq!(names, ["a \"b\" \\", "#x"]);
}
