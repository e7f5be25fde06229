# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the C program of README.md against the installed library, as README.md says, and compares what it prints.

usage: run_readme.py README WORK SOURCE      WORK: where run_client.py has installed; SOURCE: the folder of the repository
"""
import pathlib
import re
import shlex
import subprocess
import sys

from run_client import environment, need


def blocks(text, language):
    pairs = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in pairs if name == language]


def the_one(found, what):
    if len(found) != 1:
        sys.exit(f"README.md: expected one {what}, found {len(found)}")
    return found[0]


def sessions(text):
    """(command, expected output) of the block of lines that begin with "$ "."""
    shown = the_one([block for block in blocks(text, "") if block.startswith("$ ")], "block of commands with their output")
    for part in re.split(r"^\$ ", shown, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def main(readme, work, source):
    need("pkg-config", "cc")
    text = pathlib.Path(readme).read_text(encoding="utf-8")
    folder = pathlib.Path(work) / "readme"
    folder.mkdir(parents=True, exist_ok=True)
    tests = folder / "tests"
    tests.unlink(missing_ok=True)
    tests.symlink_to(pathlib.Path(source) / "tests")
    (folder / "readme.c").write_text(the_one(blocks(text, "c"), "program in C"), encoding="utf-8")
    env = environment(pathlib.Path(work) / "moved")
    for command, expected in sessions(text):
        run = subprocess.run(["sh", "-c", command], cwd=folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(f"$ {command}\n{run.stdout}", end="")
        fails = expected.startswith("RLX_E_")
        if run.stdout != expected or (run.returncode != 0) != fails:
            sys.exit(f"README.md shows for {shlex.quote(command)}:\n{expected}it ends with {run.returncode}")


if __name__ == "__main__":
    main(*sys.argv[1:])
