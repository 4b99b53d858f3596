#!/usr/bin/env bash
# What is claimed about speed on NVIDIA cards, measured again, from binaries that were built elsewhere: the machine with the
# card needs a driver and this file, and no Rust.
#   scripts/measure-card.sh --build BIN            where Rust and nvcc are: builds the binaries into the folder BIN
#   scripts/measure-card.sh BIN OUT PART…          where the card is: measures, and writes files into the folder OUT
# Parts, each of which checks every result before it says how long it took:
#   peers       sums, transforms and quotients beside sppark: OUT/peers.json, OUT/peers.svg
#   sums        sums alone, by kernel: OUT/sums.txt
#   partitions  a shape with two and three workers, uncapped and at 16 GiB, staged and unstaged: OUT/partitions.txt and the pages of the runs
#   devices     the same shape on one card and on all cards: OUT/devices.txt, OUT/devices-1, OUT/devices-all
#   profile     the three kernels that take longest, by ncu: OUT/profile.txt
# Environment: PRESTAGE_MEASURE_SHAPE (porep-32g), PRESTAGE_MEASURE_LOG (full; 20 shrinks it), PRESTAGE_MEASURE_PARTITIONS (10),
# PRESTAGE_MEASURE_LIMIT, seconds for the part peers (420). Where NVRTC is not, bring a warm cache as PRESTAGE_CACHE_DIR.
set -euo pipefail
export LC_ALL=C
root=$(realpath "$(dirname "$0")/..")
shape=${PRESTAGE_MEASURE_SHAPE:-porep-32g}
log=${PRESTAGE_MEASURE_LOG:-full}
partitions=${PRESTAGE_MEASURE_PARTITIONS:-10}
limit=${PRESTAGE_MEASURE_LIMIT:-420}

usage() {
    sed -n 's/^#   \(scripts.*\)/\1/p' "$0" >&2
    exit 2
}

# executable NAME COMMAND…: where cargo put what the command builds.
executable() {
    local name=$1 line
    shift
    line=$("$@" --message-format=json-render-diagnostics | grep -F "\"name\":\"$name\"" | grep -o '"executable":"[^"]*"' | tail -n 1)
    line=${line#*:\"}
    printf '%s\n' "${line%\"}"
}

build() {
    local bin=$1
    mkdir -p "$bin"
    bin=$(realpath "$bin")
    cd "$root"
    cp "$(executable prestage cargo build --release -p prestage-harness)" "$bin/prestage"
    cp "$(executable sweep cargo build --release -p prestage-harness --example sweep)" "$bin/sweep"
    cp "$(executable msm_times cargo build --release -p prestage-kernels --features cuda --example msm_times)" "$bin/msm_times"
    cp "$(executable peers_cuda cargo bench --no-run -p prestage-benches --features peers-cuda --bench peers_cuda)" "$bin/peers_cuda"
}

# said FILE COMMAND…: runs it, what it says also into a file.
said() {
    local file=$1
    shift
    printf '$ %s\n' "$(basename "$1") ${*:2}" >>"$file"
    "$@" 2>&1 | tee -a "$file"
}

part_peers() {
    said "$out/peers.txt" "$bin/peers_cuda" --limit "$limit" --json "$out/peers.json" --chart "$out/peers.svg"
}

part_sums() {
    said "$out/sums.txt" "$bin/msm_times" g1:16 g1:18 g1:20 g1:20:equal g1:22 g1:22:witness g1:24:profile g1:24:gb3 \
        g1:26:profile g2:16 g2:18 g2:20 g2:22 g2:24:profile
}

part_partitions() {
    said "$out/partitions.txt" "$bin/sweep" "$shape" "$log" "$partitions" "$out/partitions" \
        cuda:0,auto,on,2 cuda:0,auto,on,3 cuda:0@16GiB,auto,on,2 cuda:0,auto,off,2,4 cuda:0,none,off,2,4 cuda:0@16GiB,none,off,2,4
}

part_devices() {
    local device name size=()
    [ "$log" = full ] || size=(--log-domain "$log")
    for device in cuda:0 'cuda:*'; do
        name=devices-$([ "$device" = cuda:0 ] && echo 1 || echo all)
        said "$out/devices.txt" "$bin/prestage" run --device "$device" --shape "$shape" "${size[@]}" \
            --partitions "$partitions" --workers 2 --out "$out/$name"
    done
}

part_profile() {
    local kernel job tool
    tool=$(command -v ncu || echo /usr/local/cuda/bin/ncu)
    for kernel in g1_tree_add:g1:22 g1_tree_products:g1:22 g2_tree_add:g2:20; do
        job=${kernel#*:}
        said "$out/profile.txt" "$tool" --target-processes all --kernel-name "regex:^${kernel%%:*}$" --launch-count 1 \
            --section SpeedOfLight --section Occupancy --section ComputeWorkloadAnalysis --section MemoryWorkloadAnalysis \
            "$bin/msm_times" "$job"
    done
}

case ${1-} in
    --build) [ $# -eq 2 ] || usage; build "$2"; exit ;;
    -* | '') usage ;;
esac
[ $# -ge 3 ] || usage
bin=$1 out=$2
shift 2
for part in "$@"; do
    [ "$(type -t "part_$part")" = function ] || { echo "$part is no part: peers, sums, partitions, devices, profile" >&2; exit 2; }
done
[ -x "$bin/prestage" ] || { echo "$bin has no prestage: build it with scripts/measure-card.sh --build $bin" >&2; exit 2; }
bin=$(realpath "$bin")
mkdir -p "$out"
{ "$bin/prestage" --version; date -u +%F; "$bin/prestage" doctor; } | tee "$out/machine.txt"
for part in "$@"; do
    "part_$part"
done
