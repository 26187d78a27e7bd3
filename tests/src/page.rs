//! Tables of the documentation that tests and benchmarks verify. With `HEARBACK_WRITE_DOCS=1` they are written
//! instead.

use std::path::{Path, PathBuf};

/// A table between `<!-- name -->` and `<!-- end -->` on a page.
#[derive(Debug, Clone, Copy)]
pub struct PageTable {
    /// The page, relative to `docs`.
    pub page: &'static str,
    /// The table's name.
    pub table: &'static str,
}

impl PageTable {
    fn file(self) -> PathBuf {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        docs.join(self.page)
    }

    /// The page before the table, the table, and the rest of the page.
    fn parts(self) -> [String; 3] {
        let page = std::fs::read_to_string(self.file()).unwrap();
        let mark = format!("<!-- {} -->\n", self.table);
        let (before, rest) = page.split_once(&mark).expect("the page has the table");
        let (table, after) = rest.split_once("<!-- end -->").expect("the table ends");
        [
            format!("{before}{mark}"),
            table.to_owned(),
            after.to_owned(),
        ]
    }

    /// The table on the page.
    pub fn read(self) -> String {
        let [_, documented, _] = self.parts();
        documented
    }

    /// The table on the page. With `HEARBACK_WRITE_DOCS` set, `actual` replaces it.
    pub fn read_or_write(self, actual: &str) -> String {
        let [before, documented, after] = self.parts();
        if std::env::var_os("HEARBACK_WRITE_DOCS").is_none() {
            return documented;
        }
        std::fs::write(self.file(), format!("{before}{actual}<!-- end -->{after}")).unwrap();
        actual.to_owned()
    }
}
