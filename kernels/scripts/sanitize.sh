#!/usr/bin/env bash
# Row M6 under AddressSanitizer and UndefinedBehaviorSanitizer: builds the host build with both and runs the
# crate's tests on it. Needs g++ or clang++ with its sanitizer runtimes. Under four minutes on two cores.
#
#   kernels/scripts/sanitize.sh [test filter]
set -euo pipefail
cd "$(dirname "$0")/.."

export PRESTAGE_KERNELS_SANITIZE=1
# AddressSanitizer must come before the C library to see the tests' own allocations.
runtime=$(${CXX:-g++} -print-file-name=libasan.so)
[ -e "$runtime" ] || { echo "no libasan for ${CXX:-g++}: install the compiler's sanitizer runtime"; exit 1; }
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER"="env LD_PRELOAD=$runtime"
# Rust keeps what the runtime frees at exit; leaks of the C++ side are covered by its having no heap of its own.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0
export UBSAN_OPTIONS=print_stacktrace=1

cargo test --package prestage-kernels --test field --test curve --test ntt --test columns --test msm --test expand --test fixed_base --test regressions -- "$@"
