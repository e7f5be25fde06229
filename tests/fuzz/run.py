#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs libFuzzer targets and says for each how often it was executed, what it has covered, and what it found.

usage: run.py BUILD [TARGET ...] [--seconds S] [--jobs J] [--seed N] [--every N]

BUILD is the folder of the preset `fuzz`. Corpora lie in BUILD/corpus and grow from run to run; what is found is kept in
BUILD/found, to be run again by BUILD/bin/fuzz_TARGET FILE, with what is printed here as BUILD/found/summary. Fails if
anything was found. A target NAME-variants reads each N-th file of variants.py once, as NAME does.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

import corpus
import variants

# A run ends with the first finding. A small file must not take a second, nor a gigabyte: the limits leave room for a
# busy machine, and for what sanitizers add. The entropic schedule takes four fifths of the time where code is as much as
# here.
LIMITS = ["-entropic=0", "-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=512",
          "-max_len=4096"]
VARIANTS = {f"{target}-variants": target for target in variants.VARIANTS}
TARGETS = [*corpus.SEEDS, *VARIANTS]
ENVIRONMENT = {"ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}


def run(build, target, seconds, seed):
    """(whether it is clean, what to print)"""
    seeds, words, found = build / "corpus" / target, build / "corpus" / f"{target}.dict", build / "found"
    is_fixed = target in VARIANTS
    command = [build / "bin" / f"fuzz_{VARIANTS.get(target, target)}", *LIMITS, f"-seed={seed}",
               "-runs=0" if is_fixed else f"-max_total_time={seconds}", f"-artifact_prefix={found}/{target}-",
               *([f"-dict={words}"] if words.exists() else []), seeds]
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, errors="replace")
    log = found / f"{target}.log"
    log.write_text(done.stderr)
    last = re.findall(r"^#(\d+)\s.*\bcov: (\d+)", done.stderr, re.MULTILINE)
    executions, edges = map(int, last[-1]) if last else (0, 0)
    files = re.findall(r"Test unit written to (\S+)", done.stderr)
    lines = [f"{target}: {executions:,} executions, {edges:,} edges, {len(list(seeds.iterdir())):,} inputs kept, "
             f"{len(files)} findings"]
    if done.returncode:
        lines += [f"  {file}" for file in files]
        lines += re.findall(r"^(?:FAULT.*\n.*|.*(?:runtime error|ERROR): .*|SUMMARY.*)$", done.stderr, re.MULTILINE)[:6]
        lines.append(f"  the whole of it: {log}")
    return done.returncode == 0, "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="of each target (60)")
    parser.add_argument("--every", type=int, default=40, help="read each N-th variant (40)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once (one per processor)")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (0: another one in each run)")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}, only {', '.join(TARGETS)}")
    corpus.write(options.build / "corpus")
    for target in VARIANTS.keys() & set(options.targets or TARGETS):
        folder = options.build / "corpus" / target
        shutil.rmtree(folder, ignore_errors=True)
        if not variants.write(folder, variants.VARIANTS[VARIANTS[target]](), options.every, options.seed):
            parser.error(f"{target}: there is nothing to make variants of; ONNX files are of the package libonnx-testdata")
    found = options.build / "found"
    found.mkdir(exist_ok=True)
    clean = True
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool, open(found / "summary", "w") as summary:
        for good, text in pool.map(lambda it: run(options.build, it, options.seconds, options.seed), options.targets or TARGETS):
            print(text, flush=True)
            print(text, file=summary, flush=True)
            clean = clean and good
    sys.exit(0 if clean else 1)


if __name__ == "__main__":
    main()
