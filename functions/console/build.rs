//! Lists the files of `web/`, with a compressed copy of each, and names their version by their content.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> Result<(), Box<dyn Error>> {
    let web = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join("web");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=web");
    let mut files = files(&web)?;
    files.sort();

    let mut version = DefaultHasher::new();
    let mut list = String::from("pub(crate) static FILES: &[File] = &[\n");
    for (number, path) in files.iter().enumerate() {
        let content = fs::read(path)?;
        let name = utf8(path.strip_prefix(&web)?)?;
        (name, &content).hash(&mut version);
        let compressed = out.join(format!("{number}.gz"));
        let mut encoder = GzEncoder::new(fs::File::create(&compressed)?, Compression::best());
        encoder.write_all(&content)?;
        encoder.finish()?;
        let (path, compressed) = (utf8(path)?, utf8(&compressed)?);
        writeln!(
            list,
            "    File {{ name: {name:?}, content: include_bytes!({path:?}), compressed: include_bytes!({compressed:?}) }},"
        )?;
    }
    writeln!(
        list,
        "];\npub(crate) const VERSION: &str = \"{:016x}\";",
        version.finish()
    )?;
    fs::write(out.join("files.rs"), list)?;
    Ok(())
}

fn utf8(path: &Path) -> Result<&str, String> {
    path.to_str()
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
