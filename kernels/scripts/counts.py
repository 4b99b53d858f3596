#!/usr/bin/env python3
"""Compiles every kernel family for every architecture with NVRTC, without a GPU, and checks what came out.

Per kernel: registers, stack and spill bytes from ptxas, multiplications and instructions from the machine code.
They are compared with kernels/counts.tsv: a kernel that needs more of anything than the file says (more than one
part in 50 for instructions) fails; --update writes the file.

    kernels/scripts/counts.py [--update] [--arch sm_90,...] [--jobs 2]

Needs pip's nvidia-cuda-nvrtc 13.0 and nvidia-cuda-nvdisasm, which are installed into the git-ignored folder
kernels/target-cuda unless PRESTAGE_CUDA_PACKAGES names a folder that has them. Results are kept there too, or in
PRESTAGE_COUNTS_DIR, by the hash of sources, options and versions, so that only what changed is compiled again.
"""
import argparse
import concurrent.futures
import ctypes
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

KERNELS = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["nvidia-cuda-nvrtc==13.0.88", "nvidia-cuda-nvdisasm==13.5.37"]
ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
FAMILIES = sorted(p.stem for p in (KERNELS / "cuda").glob("*.cu"))
RESULTS = pathlib.Path(os.environ.get("PRESTAGE_COUNTS_DIR", KERNELS / "target-cuda" / "counts"))
COLUMNS = ["registers", "stack", "spill_stores", "spill_loads", "wide", "imad", "instructions"]
# Local memory is reserved for every resident thread of the device: 1536 a multiprocessor, 70 of them, on the
# 16 GiB card that the plans are made for. 64 MiB of it is the limit.
STACK_LIMIT = 64 * 2**20 // (1536 * 70)


def packages():
    """The folder nvidia/cu13 of the pip packages, installed if need be."""
    root = pathlib.Path(os.environ.get("PRESTAGE_CUDA_PACKAGES", KERNELS / "target-cuda" / "venv"))
    found = list(root.glob("lib/python3*/site-packages/nvidia/cu13"))
    if not found or not (found[0] / "lib/libnvrtc.so.13").exists() or not (found[0] / "bin/nvdisasm").exists():
        venv.create(root, with_pip=True)
        subprocess.run([root / "bin/pip", "install", "--quiet", *PACKAGES], check=True)
        found = list(root.glob("lib/python3*/site-packages/nvidia/cu13"))
    return found[0]


def options(arch):
    """As in src/cache.rs, and ptxas's report."""
    return [f"--gpu-architecture={arch}", "--std=c++17", "--ptxas-options=-v"]


def compile_one(cu13, family, arch):
    """The cubin and ptxas's log of one family."""
    ctypes.CDLL(str(next((cu13 / "lib").glob("libnvrtc-builtins.so.13*"))), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(cu13 / "lib/libnvrtc.so.13"))
    headers = sorted((KERNELS / "cuda").glob("*.cuh"))
    strings = lambda items: (ctypes.c_char_p * len(items))(*items)
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), (KERNELS / "cuda" / f"{family}.cu").read_bytes(), f"{family}.cu".encode(), len(headers),
        strings([h.read_bytes() for h in headers]), strings([h.name.encode() for h in headers]))
    args = [o.encode() for o in options(arch)]
    status = nvrtc.nvrtcCompileProgram(program, len(args), strings(args))

    def fetch(name):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{name}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{name}")(program, buffer)
        return buffer.raw

    log = fetch("ProgramLog").rstrip(b"\0").decode()
    if status != 0:
        raise SystemExit(f"{family} for {arch}:\n{log}")
    return fetch("CUBIN"), log


def from_log(log):
    """Per kernel: registers, stack frame (calls included), spills (of its own and of what it calls)."""
    result, kernel, spills = {}, None, [0, 0]
    for line in log.splitlines():
        if m := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = m[1]
            result[kernel] = dict.fromkeys(COLUMNS, 0)
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            k = result[kernel]
            k["stack"] = max(k["stack"], int(m[1]))
            k["spill_stores"] += int(m[2])
            k["spill_loads"] += int(m[3])
        elif m := re.search(r"Used (\d+) registers", line):
            result[kernel]["registers"] = int(m[1])
            if m := re.search(r"(\d+) bytes cumulative stack size", line):
                result[kernel]["stack"] = max(result[kernel]["stack"], int(m[1]))
    return result


def from_code(cu13, cubin, result):
    """Adds counts of instructions per kernel, functions that it calls included."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        f.write(cubin)
        f.flush()
        text = subprocess.run([cu13 / "bin/nvdisasm", "-c", f.name], capture_output=True, text=True, check=True).stdout
    kernel = None
    for line in text.splitlines():
        if m := re.match(r"\s*\.section\s+\.text\.(\w+)", line):
            kernel = m[1]
        elif kernel in result and (m := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line)):
            k, op = result[kernel], m[1]
            if op == "NOP":
                continue
            k["instructions"] += 1
            if op.startswith("IMAD.WIDE") or op.startswith("IMAD.HI"):
                k["wide"] += 1
            elif op.startswith("IMAD") and not re.match(r"IMAD\.(MOV|SHL|IADD|X)", op):
                k["imad"] += 1


def included(name):
    """A source and all that it includes."""
    found = {name}
    for header in re.findall(r'#include "(\w+\.cuh)"', (KERNELS / "cuda" / name).read_text()):
        found |= included(header)
    return found


def measure(job):
    cu13, family, arch = job
    sources = [KERNELS / "cuda" / name for name in sorted(included(f"{family}.cu"))]
    key = hashlib.sha256("\0".join([*PACKAGES, *options(arch)]).encode())
    for source in sources:
        key.update(source.name.encode() + b"\0" + source.read_bytes())
    kept = RESULTS / f"{family}-{arch}-{key.hexdigest()[:24]}.json"
    if kept.exists():
        return family, arch, json.loads(kept.read_text())
    cubin, log = compile_one(cu13, family, arch)
    result = from_log(log)
    from_code(cu13, cubin, result)
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}.tmp")
    part.write_text(json.dumps(result))
    part.replace(kept)
    return family, arch, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write counts.tsv instead of comparing with it")
    parser.add_argument("--arch", default=",".join(ARCHS), help="architectures, comma-separated")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    cu13 = packages()
    jobs = [(cu13, family, arch) for arch in args.arch.split(",") for family in FAMILIES]
    rows = {}
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for family, arch, kernels in pool.map(measure, jobs):
            print(f"{arch:7} {family}", flush=True)
            for kernel, counts in kernels.items():
                rows[family, kernel, arch] = [counts[c] for c in COLUMNS]

    table = KERNELS / "counts.tsv"
    known = {}
    if table.exists():
        for line in table.read_text().splitlines()[1:]:
            family, kernel, arch, *counts = line.split("\t")
            known[family, kernel, arch] = [int(c) for c in counts]
    if args.update:
        known = {k: v for k, v in known.items() if k[2] not in args.arch.split(",")} | rows
        lines = ["\t".join(["family", "kernel", "arch", *COLUMNS])]
        lines += ["\t".join([*key, *map(str, counts)]) for key, counts in sorted(known.items())]
        table.write_text("\n".join(lines) + "\n")
        return 0

    bad = 0
    for key, counts in sorted(rows.items()):
        if key not in known:
            bad += 1
            print(f"not in counts.tsv: {' '.join(key)}")
            continue
        for column, new, old in zip(COLUMNS, counts, known[key]):
            slack = old // 50 if column in ("wide", "imad", "instructions") else 0
            if new > old + slack:
                bad += 1
                print(f"{' '.join(key)}: {column} {old} -> {new}")
    print(f"{len(rows)} kernels, {bad} regressions")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
