//! Tables of the documentation that a test or a benchmark writes: `HEARBACK_WRITE_DOCS=1` lets it.

use std::path::{Path, PathBuf};

/// A page, and the name of a table between `<!-- name -->` and `<!-- end -->` there.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// The page's file, in the folder of the documentation.
    pub page: &'static str,
    /// The table's name.
    pub table: &'static str,
}

impl Told {
    fn file(self) -> PathBuf {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        docs.join(self.page)
    }

    /// The page before the table, the table, and what is behind it.
    fn parts(self) -> [String; 3] {
        let page = std::fs::read_to_string(self.file()).unwrap();
        let mark = format!("<!-- {} -->\n", self.table);
        let (before, rest) = page.split_once(&mark).expect("the page has the table");
        let (told, after) = rest.split_once("<!-- end -->").expect("the table ends");
        [format!("{before}{mark}"), told.to_owned(), after.to_owned()]
    }

    /// The table as the page has it.
    pub fn read(self) -> String {
        let [_, told, _] = self.parts();
        told
    }

    /// The table as the page has it; as it was seen, if it is to be written.
    pub fn or_written(self, seen: &str) -> String {
        let [before, told, after] = self.parts();
        if std::env::var_os("HEARBACK_WRITE_DOCS").is_none() {
            return told;
        }
        std::fs::write(self.file(), format!("{before}{seen}<!-- end -->{after}")).unwrap();
        seen.to_owned()
    }
}
