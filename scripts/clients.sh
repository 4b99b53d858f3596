#!/usr/bin/env bash
# Real clients, both ways: snarkjs verifies what prestage proves, prestage verifies what snarkjs proved, and every
# file of fixtures/bad does what its manifest says.
#   scripts/clients.sh PRESTAGE_BINARY SNARKJS_CLI_JS
set -euo pipefail
prestage=$(realpath "$1")
snarkjs=$(realpath "$2")
cd "$(dirname "$0")/.."
fixtures=groth16/tests/fixtures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PRESTAGE_CACHE_DIR=$work/cache
passed=0 failed=0

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); printf 'FAILED %s\n' "$*" >&2; }
check() { local what=$1; shift; if "$@" >"$work/log" 2>&1; then pass; else fail "$what"; sed 's/^/    /' "$work/log" >&2; fi; }

# A refusal: status 1, one line on stderr, nothing written.
refused() {
    local what=$1 status=0; shift
    rm -f "$work/out.json"
    "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
    if [ "$status" -eq 1 ] && [ "$(wc -l <"$work/stderr")" -eq 1 ] && [ ! -e "$work/out.json" ]; then pass
    else fail "$what: status $status, $(wc -l <"$work/stderr") lines on stderr, proof written: $([ -e "$work/out.json" ] && echo yes || echo no)"; sed 's/^/    /' "$work/stderr" >&2; fi
}

prove() { "$prestage" prove --device host --key "$1" --witness "$2" --proof "$work/out.json" "${@:3}"; }

echo 'snarkjs verifies our proofs; we verify snarkjs proofs'
for zkey in "$fixtures"/*/circuit.zkey; do
    dir=$(dirname "$zkey")
    name=$(basename "$dir")
    [ "$name" = bn128_rangecheck ] && continue
    rm -f "$work/out.json" "$work/public.json"
    check "$name: prove" prove "$zkey" "$dir/witness.wtns" --public "$work/public.json"
    check "$name: same public inputs" node -e 'const [a, b] = process.argv.slice(1).map(f => JSON.stringify(JSON.parse(require("fs").readFileSync(f)))); if (a !== b) { console.error(a, b); process.exit(1) }' "$dir/public.json" "$work/public.json"
    check "$name: snarkjs verifies our proof" node "$snarkjs" groth16 verify "$dir/vkey.json" "$work/public.json" "$work/out.json"
    check "$name: we verify the snarkjs proof" "$prestage" verify --vkey "$dir/vkey.json" --public "$dir/public.json" --proof "$dir/proof.json"
    check "$name: we verify its 192 bytes" "$prestage" verify --vkey "$dir/vkey.json" --public "$dir/public.json" --proof "$dir/proof192.bin"
done
for x in x0 x1; do
    dir=$fixtures/sq10
    check "sq10 $x: prove" prove "$dir/circuit.zkey" "$dir/witness_$x.wtns" --public "$work/public.json"
    check "sq10 $x: snarkjs verifies our proof" node "$snarkjs" groth16 verify "$dir/vkey.json" "$work/public.json" "$work/out.json"
    check "sq10 $x: we verify the snarkjs proof" "$prestage" verify --vkey "$dir/vkey.json" --public "$dir/public_$x.json" --proof "$dir/proof_$x.json"
done
refused 'bn128 key' prove "$fixtures/bn128_rangecheck/circuit.zkey" "$fixtures/bn128_rangecheck/witness.wtns"

echo 'a damaged file does what the manifest says'
good=$fixtures/boundary_full
while IFS=$'\t' read -r file made_from mutation expected; do
    [ "$file" = file ] && continue
    bad=$fixtures/bad/$file
    what="$file ($mutation)"
    case $file in
        *.zkey) run=(prove "$bad" "$good/witness.wtns") ;;
        *.wtns) run=(prove "$good/circuit.zkey" "$bad") ;;
        *.r1cs) run=(prove "$good/circuit.zkey" "$good/witness.wtns" --r1cs "$bad") ;;
        *.params) run=(prove "$bad" "$fixtures/$made_from/sq10.wtns" --r1cs "$fixtures/$made_from/sq10.r1cs") ;;
        proof_*) run=("$prestage" verify --vkey "$good/vkey.json" --public "$good/public.json" --proof "$bad") ;;
        public_*) run=("$prestage" verify --vkey "$good/vkey.json" --public "$bad" --proof "$good/proof.json") ;;
        *) fail "$file: nothing here knows what to do with it"; continue ;;
    esac
    case $expected in
        ACCEPT*) check "$what: accepted" "${run[@]}" ;;
        reject*|'proof must not verify') refused "$what: $expected" "${run[@]}" ;;
        *) fail "$file: unknown expectation: $expected" ;;
    esac
done <"$fixtures/bad/manifest.tsv"

echo 'bellman, arkworks and a ceremony key'
for set in "bellman_sq10/sq10.params bellman_sq10/sq10.r1cs bellman_sq10/sq10.wtns" \
    "ark_sq10/pk_uncompressed.bin bellman_sq10/sq10.r1cs bellman_sq10/sq10.wtns" \
    "sapling/sapling-output.params sapling/output.r1cs sapling/output.wtns"; do
    read -r key r1cs wtns <<<"$set"
    rm -f "$work/out.json"
    check "$key: prove" prove "$fixtures/$key" "$fixtures/$wtns" --r1cs "$fixtures/$r1cs"
    case $key in ark*) vkey=ark_sq10/vk_compressed.bin ;; *) vkey=$key ;; esac
    check "$key: verify" "$prestage" verify --vkey "$fixtures/$vkey" --public "$fixtures/$wtns" --proof "$work/out.json"
done
check 'setup: our key' "$prestage" setup --r1cs "$fixtures/rangecheck/circuit.r1cs" --key "$work/k.params" --vkey "$work/v.json"
rm -f "$work/out.json"
check 'setup: prove' prove "$work/k.params" "$fixtures/rangecheck/witness.wtns" --r1cs "$fixtures/rangecheck/circuit.r1cs" --public "$work/public.json"
check 'setup: snarkjs verifies under our key' node "$snarkjs" groth16 verify "$work/v.json" "$work/public.json" "$work/out.json"

printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
