//! Prints generated events as JSON Lines, and the expected outcome of an import to standard error.
//!
//! Usage: `hearback-generate COUNT [SEED] [anonymous]`

use std::io::{BufWriter, Write};

use hearback_tests::generate::{Lines, Mix};

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count: usize = arguments.first().map_or(Ok(1_000), |count| count.parse())?;
    let seed: u64 = arguments.get(1).map_or(Ok(1), |seed| seed.parse())?;
    let anonymous = arguments.iter().any(|argument| argument == "anonymous");
    let mut lines = Lines::new(
        seed,
        Mix {
            anonymous,
            ..Mix::default()
        },
    );
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in lines.by_ref().take(count) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    eprintln!("{:?}", lines.expected);
    Ok(())
}
