#!/usr/bin/env bash
# Fuzzes every file reader for a while, with the stable toolchain and nothing else: LLVM's coverage pass is
# turned on by hand and libFuzzer is built from the crate libfuzzer-sys.
#
#   groth16/fuzz/run.sh [seconds per target, default 30] [target ...]
#
# The corpus grows in groth16/fuzz/target/corpus; a file that breaks a reader is left in
# groth16/fuzz/target/artifacts and makes the exit status 1.
set -euo pipefail
cd "$(dirname "$0")"
seconds=${1:-30}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(zkey r1cs wtns params ark proof json_vkey json_proof json_public)

host=$(rustc -vV | sed -n 's/^host: //p')
# With a target named, these flags reach the crates and not the build scripts.
export RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module
  -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
  -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS=$(echo $RUSTFLAGS)
cargo build --release --target "$host" --target-dir target $(printf -- '--bin %s ' "${targets[@]}")

fixtures=../tests/fixtures
corpus() { echo "target/corpus/$1"; }
seed() { mkdir -p "$(corpus "$1")" && cp "$2" "$(corpus "$1")/$(echo "$2" | tr '/.' '__')"; }
for name in multiplier nopublic linear allpublic; do
  seed zkey $fixtures/$name/circuit.zkey
  seed r1cs $fixtures/$name/circuit.r1cs
  seed wtns $fixtures/$name/witness.wtns
  seed proof $fixtures/$name/proof192.bin
  seed json_vkey $fixtures/$name/vkey.json
  seed json_proof $fixtures/$name/proof.json
  seed json_public $fixtures/$name/public.json
done
seed json_proof $fixtures/bad/proof_coord_plus_p.json
seed ark $fixtures/ark_sq10/vk_compressed.bin
# Small keys, put together from the head of large ones: the verifying key, then one point in each query.
mkdir -p "$(corpus params)" "$(corpus ark)"
params=$fixtures/bellman_sq10/sq10.params
{
  head -c 1060 $params
  for _ in h l a b_g1; do printf '\0\0\0\1'; head -c 96 $params; done
  printf '\0\0\0\1'; head -c 384 $params | tail -c 192
} > "$(corpus params)/small"
ark=$fixtures/ark_sq10/pk_uncompressed.bin
{
  head -c 1064 $ark
  for _ in a b_g1; do printf '\2\0\0\0\0\0\0\0'; head -c 872 $ark | tail -c 192; done
  printf '\2\0\0\0\0\0\0\0'; head -c 480 $ark | tail -c 384
  printf '\1\0\0\0\0\0\0\0'; head -c 96 $ark
  printf '\0\0\0\0\0\0\0\0'
} > "$(corpus ark)/small"

# One thread: what a run covers then depends on its input alone.
export RAYON_NUM_THREADS=1
mkdir -p target/artifacts
status=0
for target in "${targets[@]}"; do
  echo "== $target"
  "target/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=16384 \
    -print_final_stats=1 -artifact_prefix="target/artifacts/$target-" "$(corpus "$target")" \
    > "target/$target.log" 2>&1 || { status=1; tail -n 30 "target/$target.log"; }
  sed -n 's/^stat::number_of_executed_units: */executed: /p; s/^stat::new_units_added: */new inputs: /p' "target/$target.log"
  grep -oE 'cov: [0-9]+ ft: [0-9]+' "target/$target.log" | tail -n 1
done
exit $status
