//! Joins the files of `web/` to one page, one script and one style sheet, with a compressed copy of each, and names their
//! version by their content. A page of sixty files would be sixty invocations of the function.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Where the page expects its files.
const ASSETS: &str = "/console/assets/";

fn main() -> Result<()> {
    let web = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("web");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=web");
    let page = fs::read_to_string(web.join("index.html"))?;
    let mut modules = Modules::new(&web);
    modules.add("main.js")?;
    let icon = fs::read_to_string(web.join("icon.svg"))?;
    let files = [
        (
            "console.js",
            "text/javascript; charset=utf-8",
            modules.script,
        ),
        (
            "console.css",
            "text/css; charset=utf-8",
            style(&web, &page)?,
        ),
        ("icon.svg", "image/svg+xml", icon),
    ];

    let mut version = DefaultHasher::new();
    files.hash(&mut version);
    let assets = format!("{ASSETS}{:016x}/", version.finish());
    fs::write(
        out.join("index.html"),
        joined(&page).replace(ASSETS, &assets),
    )?;
    let mut list = format!("const VERSION: &str = \"{:016x}\";\n", version.finish());
    list.push_str("static FILES: &[File] = &[\n");
    for (name, media_type, content) in files {
        fs::write(out.join(name), &content)?;
        let compressed = format!("{name}.gz");
        let mut encoder = GzEncoder::new(
            fs::File::create(out.join(&compressed))?,
            Compression::best(),
        );
        encoder.write_all(content.as_bytes())?;
        encoder.finish()?;
        writeln!(
            list,
            "    File {{ name: {name:?}, media_type: {media_type:?}, content: include_bytes!({:?}), compressed: include_bytes!({:?}) }},",
            utf8(&out.join(name))?,
            utf8(&out.join(&compressed))?
        )?;
    }
    list.push_str("];\n");
    fs::write(out.join("files.rs"), list)?;
    Ok(())
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()).into())
}

/// The lines of the page that load a style sheet, each with the name of its file.
fn sheets(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.lines()
        .filter(|line| line.trim_start().starts_with("<link rel=\"stylesheet\""))
        .filter_map(|line| Some((line, line.split_once(ASSETS)?.1.split('"').next()?)))
}

/// The style sheets, in the order of the page.
fn style(web: &Path, page: &str) -> Result<String> {
    let read: std::io::Result<Vec<_>> = sheets(page)
        .map(|(_, name)| fs::read_to_string(web.join(name)))
        .collect();
    Ok(read?.join("\n"))
}

/// The page with one style sheet, in the place of the first, and one script.
fn joined(page: &str) -> String {
    let mut joined = page.replace("main.js", "console.js");
    for (number, (line, name)) in sheets(page).enumerate() {
        joined = if number == 0 {
            joined.replace(name, "console.css")
        } else {
            joined.replace(&format!("{line}\n"), "")
        };
    }
    joined
}

/// The modules as one script. Each becomes a function that is called once and returns what the module exports, after
/// those that it imports.
struct Modules<'a> {
    web: &'a Path,
    /// Their paths; the number of a module is the place here.
    names: Vec<PathBuf>,
    /// Those whose imports are being added, and those that were.
    open: Vec<PathBuf>,
    script: String,
}

impl<'a> Modules<'a> {
    fn new(web: &'a Path) -> Self {
        Self {
            web,
            names: Vec::new(),
            open: Vec::new(),
            script: String::new(),
        }
    }

    /// Adds a module after its imports, unless it is there already; returns its number.
    fn add(&mut self, path: impl AsRef<Path>) -> Result<usize> {
        let path = path.as_ref();
        if let Some(number) = self.names.iter().position(|name| name == path) {
            return Ok(number);
        }
        if self.open.iter().any(|name| name == path) {
            return Err(format!("{} imports itself", path.display()).into());
        }
        self.open.push(path.to_owned());
        let unknown = |line: &str| {
            format!(
                "{}: {line} is a form that build.rs does not know",
                path.display()
            )
        };
        let source = fs::read_to_string(self.web.join(path))?;
        let (mut body, mut exports) = (String::new(), Vec::new());
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("import ") {
                let mut statement = line.to_owned();
                while !statement.ends_with(';') {
                    statement.push_str(lines.next().ok_or_else(|| unknown(line))?);
                }
                let (names, from) = imported(&statement).ok_or_else(|| unknown(line))?;
                let number = self.add(resolved(path, from))?;
                writeln!(body, "const {{{names}}} = module{number};")?;
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exports.push(
                    declared(declaration)
                        .ok_or_else(|| unknown(line))?
                        .to_owned(),
                );
                writeln!(body, "{declaration}")?;
            } else {
                writeln!(body, "{line}")?;
            }
        }
        let number = self.names.len();
        self.names.push(path.to_owned());
        let exports = exports.join(", ");
        writeln!(
            self.script,
            "const module{number} = (() => {{\n{body}return {{ {exports} }};\n}})();"
        )?;
        Ok(number)
    }
}

/// The names of `import { a, b as c } from "./d.js";` as a pattern, and where they are from.
fn imported(statement: &str) -> Option<(String, &str)> {
    let (names, from) = statement
        .strip_prefix("import {")?
        .split_once("} from \"")?;
    Some((names.replace(" as ", ": "), from.strip_suffix("\";")?))
}

/// The name of `async function name(`, `function name(`, `class Name …` or `const NAME =`.
fn declared(declaration: &str) -> Option<&str> {
    let declaration = declaration.strip_prefix("async ").unwrap_or(declaration);
    let (kind, rest) = declaration.split_once(' ')?;
    let known = ["function", "class", "const"].contains(&kind);
    let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '_')?;
    known.then_some(&rest[..end])
}

/// The path of what a module imports.
fn resolved(path: &Path, from: &str) -> PathBuf {
    let mut resolved = path.parent().unwrap_or(Path::new("")).to_owned();
    for part in from.split('/') {
        match part {
            "." => {}
            ".." => {
                resolved.pop();
            }
            name => resolved.push(name),
        }
    }
    resolved
}
