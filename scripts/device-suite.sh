#!/usr/bin/env bash
# Everything that is tested on an NVIDIA card, and every fixture proved on it, from binaries that were built elsewhere:
# the machine needs a driver and this folder of the repository, and no Rust.
#   scripts/device-suite.sh --build BIN            where Rust is: builds the binaries into the folder BIN
#   scripts/device-suite.sh BIN [--sanitizers] [--times] [--allow-no-card]  where the card is: runs them, prints one table
# --build does, for PACKAGE and TARGET of each line of `suites`, and for the binary `prestage`,
#   cargo test --no-run -p prestage-PACKAGE --features cuda TARGET      as BIN/PACKAGE-NAME
#   cargo build -p prestage-harness                                     as BIN/prestage
# Kernels are compiled by NVRTC; where it is not, warm the cache elsewhere with `prestage kernels build --arch sm_90` and
# bring the folder as PRESTAGE_CACHE_DIR. Environment: CUDA_VISIBLE_DEVICES chooses the card, PRESTAGE_SUITE_LIMIT is the
# most seconds that one row may take.
# It fails if a row does. --times adds what sums and transforms take, beside published times of another library.
# --sanitizers adds the rows of compute-sanitizer: memcheck, racecheck, initcheck and synccheck over small proofs, sums and
# transforms. Where the tool is not, one row says so.
# --allow-no-card tries the script itself on a machine without a card: tests skip, fixtures are proved on the CPU.
set -euo pipefail
export LC_ALL=C
root=$(realpath "$(dirname "$0")/..")
fixtures=$root/groth16/tests/fixtures
limit=${PRESTAGE_SUITE_LIMIT:-1800}

# Binary, package, target as cargo names it, and which of its tests need a card.
suites='vram-cuda vram --test=cuda
transfer-cuda transfer --test=cuda
kernels-device kernels --test=device
kernels-msm kernels --test=device_msm
ntt-lib ntt --lib m1_chunk
ntt-device ntt --test=device on_a_card::m1
msm-device msm --test=device card::
groth16-card groth16 --test=card
groth16-policies groth16 --test=policies nvidia
groth16-faults groth16 --test=faults nvidia
groth16-twenty groth16 --test=twenty_proofs nvidia
groth16-resident groth16 --test=resident nvidia
groth16-joint groth16 --test=joint nvidia
groth16-regressions groth16 --test=regressions card::
harness-script harness --test=script driver::
harness-scenario harness --test=scenario nvidia'

usage() {
    sed -n 's/^#   \(scripts.*\)/\1/p' "$0" >&2
    exit 2
}

build() {
    local bin=$1 name package target _ line
    mkdir -p "$bin"
    bin=$(realpath "$bin")
    cd "$root"
    while read -r name package target _; do
        # Cargo says where it put it: `Executable tests/x.rs (target/debug/deps/x-HASH)`.
        line=$(cargo test --no-run -p "prestage-$package" --features cuda "$target" 2>&1 </dev/null | tee >(cat >&2) | grep Executable)
        line=${line##*(}
        cp "${line%)}" "$bin/$name"
    done <<<"$suites"
    cargo build -p prestage-harness
    cp "${CARGO_TARGET_DIR:-target}/debug/prestage" "$bin/prestage"
}

bin='' allow=no sanitizers=no times=no
for argument in "$@"; do
    case $argument in
        --build) [ $# -eq 2 ] && [ "$1" = --build ] || usage; build "$2"; exit ;;
        --allow-no-card) allow=yes ;;
        --sanitizers) sanitizers=yes ;;
        --times) times=yes ;;
        -*) usage ;;
        *) [ -z "$bin" ] || usage; bin=$argument ;;
    esac
done
[ -n "$bin" ] || usage
[ -x "$bin/prestage" ] || { echo "$bin has no prestage: build it with scripts/device-suite.sh --build $bin" >&2; exit 2; }
bin=$(realpath "$bin")
prestage=$bin/prestage

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table=() failed=0

# row NAME COMMAND…: runs it, and writes down how it ended. Its output is shown when it fails.
row() {
    local name=$1 start=${EPOCHREALTIME/./} result=ok status=0 time
    shift
    "$@" >"$work/log" 2>&1 </dev/null || status=$?
    time=$((${EPOCHREALTIME/./} - start))
    if [ "$status" -ne 0 ]; then
        result="FAILED ($status)"
        failed=$((failed + 1))
        sed 's/^/    /' "$work/log" >&2
    elif [ -s "$work/note" ]; then
        result="ok, $(<"$work/note")"
    fi
    rm -f "$work/note"
    time=$(printf '%d.%02d' $((time / 1000000)) $((time / 10000 % 100)))
    table+=("$(printf '| %-35s | %-24s | %8s |' "$name" "$result" "$time")")
    echo "$name: $result, $time s" >&2
}

# The tests of a binary that match a filter. None at all is a failure: they were renamed, or built without CUDA. What they print
# as tables, and what they skip, is shown under the table of rows.
tests() {
    local passed
    timeout "$limit" "$bin/$1" ${2:+"$2"} --nocapture --test-threads=1 | tee "$work/tests" || return
    passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$work/tests" | tail -n 1)
    [ "${passed:-0}" -gt 0 ] || { echo "no test of $1 was run"; return 1; }
    if [ "$device" = host ]; then
        echo "$passed without a card" >"$work/note"
    else
        echo "$passed passed" >"$work/note"
        grep -E '^\||skipped:' "$work/tests" >"$work/told" || return 0
        { printf '\n%s:\n\n' "$1"; cat "$work/told"; } >>"$work/more"
    fi
}

# A tool of compute-sanitizer over tests. The binary must find no fault of its own either.
sanitize() {
    local tool=$1 name=$2 filter=$3
    timeout "$limit" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 5 "$bin/$name" "$filter" --test-threads=1
}

# run NAME ARGUMENTS…: partitions of a shape, all verified, with nothing that the account of time leaves open.
partitions() {
    local log=16
    [ "$device" != host ] || log=10
    timeout "$limit" "$prestage" run --device "$device" --shape porep-32g --log-domain $log "$@" | tee "$work/run" || return
    sed -n 's/^times: *//p' "$work/run" >"$work/note"
}

# prove KEY WITNESS VKEY PUBLIC [--r1cs F]: proves on the device, and verifies.
prove() {
    local key=$1 witness=$2 vkey=$3 public=$4
    shift 4
    rm -f "$work/proof.json"
    timeout "$limit" "$prestage" prove --device "$device" --key "$key" --witness "$witness" \
        --proof "$work/proof.json" "$@" || return
    timeout "$limit" "$prestage" verify --insecure --vkey "$vkey" --public "$public" --proof "$work/proof.json"
}

# A key of another curve is refused, by its name.
other_curve() {
    local dir=$fixtures/bn128_rangecheck status=0
    "$prestage" prove --device "$device" --key "$dir/circuit.zkey" --witness "$dir/witness.wtns" \
        --proof "$work/refused.json" || status=$?
    [ "$status" -eq 1 ] && [ ! -e "$work/refused.json" ]
}

"$prestage" doctor | tee "$work/doctor"
device=cuda:0
if grep -q '^card  *ok' "$work/doctor"; then
    export PRESTAGE_REQUIRE_CUDA=1
elif [ "$allow" = yes ]; then
    device=host
    unset PRESTAGE_REQUIRE_CUDA
else
    echo 'no card is here (--allow-no-card tries the script without one)' >&2
    exit 1
fi

while read -r name _ _ filter; do
    row "$name${filter:+ $filter}" tests "$name" "$filter"
done <<<"$suites"

row 'run, 20 partitions, 2 workers' partitions --partitions 20 --workers 2
if [ "$device" != host ] && grep -q '^CUPTI  *ok' "$work/doctor"; then
    row 'run --cupti, 6 partitions' partitions --partitions 6 --workers 2 --cupti
fi

if [ "$times" = yes ]; then
    export PRESTAGE_DEVICE_TIMES=1
    row 'ntt-device times' tests ntt-device times_of
    row 'msm-device times' tests msm-device times_of
    unset PRESTAGE_DEVICE_TIMES
fi

if [ "$sanitizers" = yes ]; then
    sanitizer=$(command -v compute-sanitizer || true)
    [ -n "$sanitizer" ] || sanitizer=/usr/local/cuda/bin/compute-sanitizer
    if [ "$device" != host ] && [ -x "$sanitizer" ]; then
        for tool in memcheck racecheck initcheck synccheck; do
            row "$tool groth16-regressions b181" sanitize $tool groth16-regressions b181
        done
        row 'memcheck vram-cuda work::kernels' sanitize memcheck vram-cuda work::kernels
    else
        table+=("$(printf '| %-35s | %-24s | %8s |' sanitizers 'not run: no tool, no card' '')")
        sanitizers=skipped
    fi
fi

proofs=0
for zkey in "$fixtures"/*/circuit.zkey; do
    dir=$(dirname "$zkey")
    name=$(basename "$dir")
    [ "$name" != bn128_rangecheck ] || continue
    for witness in "$dir"/witness*.wtns; do
        public=${witness/witness/public}
        proofs=$((proofs + 1))
        row "prove $name/$(basename "$witness")" prove "$zkey" "$witness" "$dir/vkey.json" "${public%.wtns}.json"
    done
done
while read -r key vkey circuit; do
    proofs=$((proofs + 1))
    row "prove $key" prove "$fixtures/$key" "$fixtures/$circuit.wtns" "$fixtures/$vkey" "$fixtures/$circuit.wtns" \
        --r1cs "$fixtures/$circuit.r1cs"
done <<'END'
bellman_sq10/sq10.params bellman_sq10/sq10.params bellman_sq10/sq10
ark_sq10/pk_uncompressed.bin ark_sq10/vk_compressed.bin bellman_sq10/sq10
sapling/sapling-output.params sapling/sapling-output.params sapling/output
END
row 'bn128_rangecheck is refused' other_curve

printf '\n%s, %s, %s proofs, on %s\n\n' "$("$prestage" --version)" "$(date -u +%F)" "$proofs" "$device"
[ "$device" != host ] || printf 'No card: tests skipped, fixtures proved on the CPU.\n\n'
printf '| %-35s | %-24s | %8s |\n|%s|%s|%s:|\n' row result seconds "$(printf -- '-%.0s' {1..37})" \
    "$(printf -- '-%.0s' {1..26})" "$(printf -- '-%.0s' {1..9})"
printf '%s\n' "${table[@]}"
printf '\n%d rows, %d failed\n' "${#table[@]}" "$failed"
[ "$sanitizers" = yes ] || printf 'compute-sanitizer: not run\n'
[ ! -s "$work/more" ] || cat "$work/more"
[ "$failed" -eq 0 ]
