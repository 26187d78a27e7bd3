# What .ci/run and .ci/proof share: the steps and their times, the caches, the tools. To be sourced.
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true

root=$PWD
# Compiled dependencies and tools outlive a clone. Everything works without them, only longer.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hearback
deny_version=0.20.2
names=()
begun=()

step() {
    names+=("$*")
    begun+=("$SECONDS")
    printf '\n==> [%02d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"
}

# Runs when a script ends: the steps and their times, also where one failed, and the end of what it started.
moto=
trap 'failed=$?; [[ -z $moto ]] || kill "$moto"; ((failed == 0)) || table >&2' EXIT

# The steps, each with its time.
table() {
    local ends=("${begun[@]:1}" "$SECONDS") i took
    printf '\n%s\n' "  time  step"
    for i in "${!names[@]}"; do
        took=$((ends[i] - begun[i]))
        printf '%3d:%02d  %s\n' $((took / 60)) $((took % 60)) "${names[i]}"
    done
    printf '%3d:%02d  %s\n\n' $((SECONDS / 60)) $((SECONDS % 60)) "all"
}

# Runs cargo test, which is the last step: the table comes before the number of its tests.
tests_then_table() {
    local log=$tools/tests.log
    # Many tests wait for a queue, so that a thread for each core leaves the cores idle.
    export RUST_TEST_THREADS=$((2 * $(getconf _NPROCESSORS_ONLN)))
    "$@" 2>&1 | tee "$log"
    table
    awk '/^test result:/ { passed += $4; failed += $6 } END { print passed " passed, " failed " failed" }' "$log"
}

hash_of() {
    sha256sum | cut -c -12
}

# One run at a time: two would only slow each other down.
mkdir -p "$cache"
if command -v flock >/dev/null; then
    exec 9>"$cache/lock"
    flock --timeout 1800 9 || echo "another run has the lock for half an hour: this one does not wait any longer" >&2
fi

tools=$cache/tools
mkdir -p "$tools"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target-$(rustc -vV | hash_of)}
# Incremental compilation costs more than it saves where most runs see another commit.
export CARGO_INCREMENTAL=0
mkdir -p "$CARGO_TARGET_DIR"
if [[ $CARGO_TARGET_DIR == "$cache"/target-* ]]; then
    # Those of other compilers, and one that has grown too large.
    find "$cache" -maxdepth 1 -name 'target-*' ! -path "$CARGO_TARGET_DIR" -exec rm -rf {} +
    if (($(du -s -k "$CARGO_TARGET_DIR" | cut -f 1) > 20000000)); then
        rm -rf "$CARGO_TARGET_DIR"
        mkdir -p "$CARGO_TARGET_DIR"
    fi
fi
# Cargo takes the crates of two clones for the same and compares times, so that one clone could be tested with the code
# of another. Dependencies stay, our own crates are compiled anew.
if [[ $(cat "$CARGO_TARGET_DIR/clone" 2>/dev/null) != "$root" ]]; then
    find "$CARGO_TARGET_DIR" -path '*/.fingerprint/hearback-*' -prune -exec rm -rf {} +
    echo "$root" >"$CARGO_TARGET_DIR/clone"
fi

install_tools() {
    # The caller's PYTHONPATH or virtual environment would shadow ours.
    unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
    local venv
    venv=$tools/venv-$({ python3 --version && cat infra/ci/requirements.txt; } | hash_of)
    if [[ ! -e $venv/complete ]]; then
        rm -rf "$tools"/venv-*
        python3 -m venv "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement infra/ci/requirements.txt
        touch "$venv/complete"
    fi
    export PATH=$tools/cargo-deny-$deny_version/bin:$venv/bin:$PATH
}

install_cargo_deny() {
    [[ -x $tools/cargo-deny-$deny_version/bin/cargo-deny ]] && return
    # A debug build takes half the time to compile, and a check takes seconds all the same.
    env -u CARGO_TARGET_DIR cargo install --debug --locked --quiet --root "$tools/cargo-deny-$deny_version" \
        --version "$deny_version" cargo-deny
}

install_chromium() {
    command -v chromium chromium-browser google-chrome >/dev/null && return
    local as_root=()
    if ! command -v apt-get >/dev/null; then
        echo "no Chromium is on the path, and there is no apt-get to install it with" >&2
        return 1
    fi
    if [[ $(id -u) != 0 ]]; then
        if ! sudo -n true 2>/dev/null; then
            echo "no Chromium is on the path: \`apt-get install chromium\` needs root, or sudo without a password" >&2
            return 1
        fi
        as_root=(sudo -n)
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >"$tools/chromium.log" 2>&1 \
        || { cat "$tools/chromium.log" >&2; return 1; }
}
