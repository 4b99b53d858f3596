# The parts of CI as functions. Sourced by .ci/run and .ci/nightly from the root of the repository.
# shellcheck shell=bash

export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0 RUST_BACKTRACE=1
tools=$PWD/target/ci
fuzz_seconds=${fuzz_seconds:-8}
times=()

run_parts() {
    mkdir -p "$tools"
    local part start
    for part in "$@"; do
        printf '\n== %s\n' "$part"
        start=$SECONDS
        "part_$part"
        times+=("$(printf '%-10s %4d s' "$part" $((SECONDS - start)))")
    done
    printf '\n== time\n'
    printf '%s\n' "${times[@]}"
    printf '%-10s %4d s\n' total "$SECONDS"
    # The test runner's own closing lines, and their sum.
    if [ -s "$tools/tests.log" ]; then
        printf '\n'
        grep '^test result:' "$tools/tests.log"
        awk '/^test result:/ { p += $4; f += $6 } END { printf "\n%d passed, %d failed\n", p, f }' "$tools/tests.log"
    fi
}

# Debian packages, Python packages in a venv, npm packages in a folder: all by name, none system-wide but apt's.
part_install() {
    local missing=()
    command -v c++ >/dev/null || missing+=(g++)
    command -v make >/dev/null || missing+=(make)
    command -v npm >/dev/null || missing+=(nodejs npm)
    command -v python3 >/dev/null || missing+=(python3)
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    if [ ${#missing[@]} -gt 0 ]; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
    fi
    [ -x "$tools/venv/bin/python" ] || python3 -m venv "$tools/venv"
    "$tools/venv/bin/python" -m pip install -q nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-nvdisasm==13.5.37
    [ -d "$tools/npm/node_modules/snarkjs" ] || npm install --silent --no-fund --no-audit --prefix "$tools/npm" snarkjs@0.7.6
    cargo --version
    c++ --version | head -n 1
    node --version
}

part_format() { cargo fmt --all --check; }

part_clippy() { cargo clippy --workspace --all-targets --quiet -- -D warnings; }

part_docs() { RUSTDOCFLAGS='-D warnings' cargo doc --no-deps --quiet; }

# Each crate alone, without its defaults and with every feature.
part_features() {
    local crate
    for crate in vram transfer kernels ntt msm groth16 harness; do
        cargo check --quiet -p "prestage-$crate" --no-default-features
        cargo check --quiet -p "prestage-$crate" --all-features
    done
    # The peer on NVIDIA cards needs nvcc to be linked, and nothing to be checked.
    NVCC=off cargo clippy --quiet -p prestage-benches --all-targets --features peers-cuda -- -D warnings
    # Without a driver these say what they skip, and test what is said then.
    cargo test --quiet -p prestage-vram -p prestage-transfer --features cuda --test cuda --test probe
}

# snarkjs verifies our proofs, we verify snarkjs' proofs, and damaged files are refused.
part_clients() {
    cargo build --release --quiet -p prestage-harness
    scripts/clients.sh "${CARGO_TARGET_DIR:-target}/release/prestage" "$tools/npm/node_modules/snarkjs/build/cli.cjs"
    cargo test --quiet -p prestage-peers
}

part_fuzz() { groth16/fuzz/run.sh "$fuzz_seconds"; }

part_loom() { RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --quiet -p prestage-vram --release --test loom; }

part_shuttle() {
    RUSTFLAGS='--cfg shuttle' CARGO_TARGET_DIR=target/shuttle cargo test --quiet -p prestage-vram --release --test shuttle -- --nocapture
}

part_sanitize() { kernels/scripts/sanitize.sh; }

# Every kernel for every architecture, without a GPU; what was compiled before is kept by the hash of its sources.
part_nvrtc() {
    PRESTAGE_CUDA_PACKAGES=$tools/venv PRESTAGE_COUNTS_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/prestage/counts \
        kernels/scripts/counts.py
}

part_bench() { cargo bench --quiet -p prestage-benches -- --test; }

# The README's own command, last, so that the run ends with its summary.
part_tests() {
    local command
    command=$(sed -n '/^cargo test/{p;q}' README.md)
    [ -n "$command" ] || { echo 'README.md has no line that begins with "cargo test"' >&2; return 1; }
    $command 2>&1 | tee "$tools/tests.log"
}
