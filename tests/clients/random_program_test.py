#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs made-up PnetCDF programs natively and under `nessie run`: output and file must be the same.

  random_program_test.py NESSIE RANDOM_PROGRAM [--seeds 1-8] [--procs 1,3] [--modes caching,direct] [--servers 1,2]

A program that fails natively, or whose two native runs differ, says nothing: its seed is skipped, and said so. (ROMIO of
Open MPI 4.1 aborts or hangs in some small collective writes.)
"""
import argparse
import os
import subprocess
import sys
import tempfile


def numbers(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1) if "," not in text else [int(n) for n in text.split(",")]


def environment(procs):
    """OMPIO (4.1) reads some small collective selections of several processes wrong; ROMIO leaves, where a single process
    did not write, what its buffers held."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
                OMPI_MCA_io="ompio" if procs == 1 else "romio321")


def run(prefix, program, procs, seed, path, operations):
    """Returns (what the program printed, its file's bytes), or raises with what went wrong."""
    command = prefix + ["mpiexec", "-n", str(procs), program, str(seed), path, str(operations)]
    with subprocess.Popen(command, env=environment(procs), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.terminate()  # not kill: mpiexec and nessie run end what they started
            process.communicate(timeout=30)
            raise
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{err.decode(errors='replace')}")
    with open(path, "rb") as file:
        return out.decode(), file.read()


def first_difference(native, staged):
    for number, (a, b) in enumerate(zip(native.splitlines(), staged.splitlines()), 1):
        if a != b:
            return f"line {number}: natively '{a}', staged '{b}'"
    return f"{len(native.splitlines())} lines natively, {len(staged.splitlines())} staged"


def check(arguments, seed, procs, directory):
    """Returns how many staged runs were compared, or raises."""
    path = os.path.join(directory, "file.nc")
    try:
        native, again = (run([], arguments.program, procs, seed, path, arguments.operations) for _ in range(2))
    except (RuntimeError, subprocess.TimeoutExpired):
        native, again = None, None
    if native is None or native != again or "MPI error" in native[0]:
        print(f"seed {seed}, {procs} processes: skipped, natively {'undetermined' if native else 'failing'}", flush=True)
        return 0
    compared = 0
    for mode in arguments.modes.split(","):
        for servers in numbers(arguments.servers):
            prefix = [arguments.nessie, "run", "--mode", mode, "--servers", str(servers), "--"]
            output, content = run(prefix, arguments.program, procs, seed, path, arguments.operations)
            where = f"seed {seed}, {procs} processes, {mode}, {servers} servers"
            if output != native[0]:
                raise RuntimeError(f"{where}: {first_difference(native[0], output)}")
            if content != native[1]:
                raise RuntimeError(f"{where}: the files differ")
            compared += 1
    return compared


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nessie")
    parser.add_argument("program")
    parser.add_argument("--seeds", default="1-6")
    parser.add_argument("--procs", default="1,3")
    parser.add_argument("--modes", default="caching,direct")
    parser.add_argument("--servers", default="1,2")
    parser.add_argument("--operations", type=int, default=40)
    parser.add_argument("--keep-going", action="store_true")
    arguments = parser.parse_args()
    compared = failed = 0
    with tempfile.TemporaryDirectory() as directory:
        for seed in numbers(arguments.seeds):
            for procs in numbers(arguments.procs):
                try:
                    compared += check(arguments, seed, procs, directory)
                except (RuntimeError, subprocess.TimeoutExpired, OSError) as problem:
                    print(f"FAILED: seed {seed}, {procs} processes: {problem}", flush=True)
                    failed += 1
                    if not arguments.keep_going:
                        sys.exit(1)
    print(f"{compared} staged runs were the same as native ones, {failed} failed")
    sys.exit(1 if failed or compared == 0 else 0)


if __name__ == "__main__":
    main()
