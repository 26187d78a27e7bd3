//! The table of `docs/reference/isolation.md`.

use reqwest::Method;

const PAGE: &str = include_str!("../../../docs/reference/isolation.md");
/// The expansion of `…` in a path.
const CONVERSATION: &str = "/conversations/{tenant}/{project}/{conversation_id}";

/// Every route for every caller.
pub struct Table {
    /// The kinds of callers, in the order of the columns.
    pub callers: Vec<String>,
    /// The requests.
    pub rows: Vec<Row>,
}

/// A request, and the response to each caller.
pub struct Row {
    /// The first cell: the route, and the subject of the request.
    pub name: String,
    /// The cell of each caller.
    pub cells: Vec<Cell>,
}

/// The expected response.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// The status.
    pub status: u16,
    /// The status of the event in a batch, in parentheses.
    pub of_event: Option<u16>,
    /// Whether the caller accesses the owner's data, in bold.
    pub is_the_owners: bool,
}

impl Table {
    /// Reads the only table of the page.
    pub fn read() -> Self {
        let mut lines = PAGE.lines().filter_map(cells);
        let header = lines.next().unwrap();
        let callers = header[1..].iter().map(ToString::to_string).collect();
        let rule = lines.next().unwrap();
        assert!(rule.iter().all(|cell| cell.starts_with("---")), "{rule:?}");
        let rows = lines.map(|cells| Row {
            name: cells[0].to_owned(),
            cells: cells[1..].iter().map(|cell| Cell::read(cell)).collect(),
        });
        Self {
            callers,
            rows: rows.collect(),
        }
    }
}

/// Whether the page describes this caller.
pub fn documents(caller: &str) -> bool {
    PAGE.contains(&format!("\n- **{caller}**: "))
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let line = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(line.split('|').map(str::trim).collect())
}

impl Row {
    /// Method and path.
    pub fn route(&self) -> (Method, String) {
        let route = self.name.split('`').nth(1).unwrap();
        let (method, path) = route.split_once(' ').unwrap();
        (method.parse().unwrap(), path.replace('…', CONVERSATION))
    }

    /// The method and the path as text.
    pub fn full_route(&self) -> String {
        let (method, path) = self.route();
        format!("{method} {path}")
    }
}

impl Cell {
    fn read(text: &str) -> Self {
        let plain = text.trim_matches('*');
        let (status, of_event) = match plain.split_once(' ') {
            Some((status, event)) => (status, Some(event.trim_matches(['(', ')']))),
            None => (plain, None),
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no status: {text}"));
        Self {
            status: number(status),
            of_event: of_event.map(number),
            is_the_owners: plain != text,
        }
    }

    /// Whether the request is rejected.
    pub fn is_rejected(self) -> bool {
        self.of_event.unwrap_or(self.status) >= 400
    }
}
