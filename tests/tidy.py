#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources of the library, as build/release compiles them but for its precompiled headers: so
each source includes what it needs.

usage: tidy.py BUILD_FOLDER
A file that was clean is looked at again only when it, what it includes, its flags or .clang-tidy have changed.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS_OF_GCC_ONLY = re.compile(r" (-fno-gnu-unique|-fpch-preprocess|-Winvalid-pch|-include \S*/cmake_pch\.hxx)(?= )")


def commands(build):
    """Of each source of the library: how it is first compiled, as a compilation database says it."""
    of_library = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        entry["command"] = FLAGS_OF_GCC_ONLY.sub("", entry["command"])
        if pathlib.Path(entry["file"]).relative_to(ROOT).parts[0] in ("src", "backends"):
            of_library.setdefault(entry["file"], entry)
    return list(of_library.values())


def files_read(build):
    """Source -> itself and what it includes of this tree, as ninja has seen them; of those headers that are precompiled
    it says nothing, so they count for all."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    read, precompiled = {}, set()
    for block in listed.split("\n\n"):
        paths = [os.path.normpath(build / line.strip()) for line in block.splitlines()[1:]]
        own = {path for path in paths if path.startswith(f"{ROOT}/") and not path.startswith(f"{build}/")}
        if paths and paths[0].endswith("/cmake_pch.hxx.cxx"):
            precompiled |= own
        elif paths:
            read[paths[0]] = own
    return {source: sorted(own | precompiled) for source, own in read.items()}


def key(entry, paths):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + entry["command"].encode())
    for path in paths:
        digest.update(pathlib.Path(path).read_bytes())
    return digest.hexdigest()


def faults(folder, entry):
    # By --config-file, as a .clang-tidy that does not parse would otherwise stand for the checks of nobody's choice.
    done = subprocess.run(["clang-tidy", "--quiet", "--warnings-as-errors=*", f"--config-file={ROOT}/.clang-tidy",
                           "-p", folder, entry["file"]], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return done.stdout or done.stderr or f"{entry['file']}: clang-tidy ended with {done.returncode}\n"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    entries, read = commands(build), files_read(build)
    (folder / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
    stamps = {entry["file"]: folder / key(entry, read[entry["file"]]) for entry in entries}
    stale = [entry for entry in entries if not stamps[entry["file"]].exists()]
    found = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, text in zip(stale, pool.map(lambda entry: faults(folder, entry), stale)):
            found += bool(text)
            print(text, end="", flush=True)
            if not text:
                stamps[entry["file"]].touch()
    print(f"{len(entries)} files, {len(stale)} of them looked at, {found} with faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
