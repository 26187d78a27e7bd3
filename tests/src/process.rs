//! The command `hearback` as a process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// The packages of the functions.
const FUNCTIONS: [&str; 13] = [
    "hearback-batch",
    "hearback-console",
    "hearback-erasure",
    "hearback-export",
    "hearback-insights",
    "hearback-operations",
    "hearback-preferences",
    "hearback-relay",
    "hearback-retrieval",
    "hearback-signals",
    "hearback-stream",
    "hearback-submit",
    "hearback-turns",
];

/// The binary of a package, built in the profile of the tests if necessary.
pub fn binary(package: &str, name: &str) -> PathBuf {
    build(name, ["--package", package])
}

fn build<'a>(name: &str, selection: impl IntoIterator<Item = &'a str>) -> PathBuf {
    let build = escargot::CargoBuild::new().bin(name).args(selection);
    let build = if cfg!(debug_assertions) {
        build
    } else {
        // The profile of the functions, as `sam build` uses it.
        let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions/.cargo/config.toml");
        build.release().arg("--config").arg(profile)
    };
    build
        .manifest_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"))
        .run()
        .unwrap_or_else(|error| panic!("{name} does not build: {error}"))
        .path()
        .to_owned()
}

/// The command `hearback`. This crate has a binary of it, which cargo builds with the tests and benchmarks into the
/// parent of their folder.
pub fn hearback() -> PathBuf {
    built_with_the_tests("hearback-under-test")
}

fn built_with_the_tests(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.parent().and_then(Path::parent).unwrap();
    folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// The variable that tells the binary of all functions which one to run.
pub const FUNCTION: &str = "HEARBACK_FUNCTION";

/// The `bootstrap` of a function: one that was built for Lambda, if `HEARBACK_BOOTSTRAP_DIR` is set; in a benchmark, one
/// that is built here. Tests run the binary of all functions, which needs [`FUNCTION`] in its environment.
pub fn bootstrap(function: &str) -> PathBuf {
    if let Some(folder) = std::env::var_os("HEARBACK_BOOTSTRAP_DIR") {
        Path::new(&folder).join(function).join("bootstrap")
    } else if cfg!(debug_assertions) {
        built_with_the_tests("hearback-functions")
    } else {
        // With the functions' features only, as for Lambda.
        build(
            function,
            FUNCTIONS.map(|package| ["--package", package]).concat(),
        )
    }
}

/// Runs `hearback` with these arguments until it exits.
pub async fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Output {
    Command::new(hearback())
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap()
}

/// The peak memory of a process, in kB.
pub fn peak_memory(process: u32) -> u64 {
    memory_of(process, "VmHWM:")
}

fn memory_of(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("Linux has /proc");
    let found = status.lines().find_map(|line| line.strip_prefix(name));
    let found = found.and_then(|found| found.trim().strip_suffix("kB"));
    found.unwrap().trim().parse().unwrap()
}

/// The processor time of a process.
pub fn processor_time(process: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.expect("Linux has /proc");
    let times = tasks.map(|task| {
        let times = std::fs::read_to_string(task.unwrap().path().join("schedstat"));
        let times = times.unwrap_or_default();
        let nanoseconds = times.split(' ').next().and_then(|time| time.parse().ok());
        Duration::from_nanos(nanoseconds.unwrap_or_default())
    });
    times.sum()
}

/// A bundle as a process. It is killed when it is dropped.
pub struct Process {
    child: Child,
    /// The printed address of the gateway.
    pub address: String,
    /// The printed token.
    pub token: String,
    _out: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts `hearback serve` on a folder, and waits until it prints its address.
    pub async fn serve(data: &Path, port: u16) -> Self {
        Self::start(Command::new(hearback()), data, port).await
    }

    /// The same, with more options.
    pub async fn serve_with(data: &Path, options: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            r#"program=$1 options=$2; shift 2; exec "$program" "$@" $options"#,
            "sh",
        ]);
        shell.arg(hearback()).arg(options.join(" "));
        Self::start(shell, data, 0).await
    }

    /// The same, with a log at level `info` in a file.
    pub async fn serve_logging(data: &Path, log: std::fs::File) -> Self {
        let mut command = Command::new(hearback());
        command.env("RUST_LOG", "info").stderr(log);
        Self::start(command, data, 0).await
    }

    /// The same, with the default log in a file, after a shell has run `first`.
    pub async fn serve_quietly(first: &str, data: &Path, log: std::fs::File) -> Self {
        let mut shell = Command::new("sh");
        shell
            .env_remove("RUST_LOG")
            .stderr(log)
            .args(["-c", &format!("{first}\nexec \"$0\" \"$@\"")])
            .arg(hearback());
        Self::start(shell, data, 0).await
    }

    /// The same, with a soft limit of open files.
    pub async fn serve_with_files(data: &Path, files: u32) -> Self {
        Self::serve_after(&format!("ulimit -S -n {files}"), data).await
    }

    /// The same, after a shell has run `first`.
    pub async fn serve_after(first: &str, data: &Path) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &format!("{first}; exec \"$0\" \"$@\"")])
            .arg(hearback());
        Self::start(shell, data, 0).await
    }

    async fn start(mut command: Command, data: &Path, port: u16) -> Self {
        let mut child = command
            .args(["serve", "--port", &port.to_string(), "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut address, mut token) = (None, None);
        while let Some(line) = out.next_line().await.unwrap() {
            if let Some((_, rest)) = line.split_once("listening on http://") {
                address = rest.split(' ').next().map(ToOwned::to_owned);
            }
            if let Some((_, rest)) = line.split_once("TOKEN=") {
                token = Some(rest.to_owned());
            }
            if line.contains("Ctrl-C") {
                break;
            }
        }
        Self {
            child,
            address: address.expect("the bundle prints its address"),
            token: token.expect("the bundle prints a token"),
            _out: out,
        }
    }

    /// The peak memory, in MB.
    pub fn peak_memory(&self) -> u64 {
        peak_memory(self.child.id().unwrap()) / 1_000
    }

    /// The current memory, in MB.
    pub fn memory(&self) -> u64 {
        memory_of(self.child.id().unwrap(), "VmRSS:") / 1_000
    }

    /// Resets the peak memory to the current memory.
    pub fn reset_peak(&self) {
        let id = self.child.id().unwrap();
        std::fs::write(format!("/proc/{id}/clear_refs"), "5").expect("Linux resets the peak");
    }

    /// The peak memory since the last reset, in bytes.
    pub fn peak(&self) -> u64 {
        1_024 * peak_memory(self.child.id().unwrap())
    }

    /// The current memory, in bytes.
    pub fn resident(&self) -> u64 {
        1_024 * memory_of(self.child.id().unwrap(), "VmRSS:")
    }

    /// Sends SIGKILL.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends SIGTERM, and returns whether the process exits with success.
    pub async fn terminate(mut self) -> bool {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.unwrap().success());
        self.child.wait().await.unwrap().success()
    }
}
