#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks cmake/ccache.sh: an old precompiled header is gone when ccache begins, headers count as they are written where one
is made, and all arguments arrive."""
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "cmake/ccache.sh"
CCACHE = '#!/bin/sh\nls\necho "depend: ${CCACHE_DEPEND-no}"\nprintf "%s\\n" "$@"\n'  # stands for ccache


def found(place, arguments):
    """What the folder holds when ccache begins, its option, and its arguments."""
    for name in ("old.gch", "old.o"):
        (place / name).touch()
    done = subprocess.run(["sh", SCRIPT, place / "bin/ccache", *arguments], cwd=place, check=True, capture_output=True,
                          text=True)
    return done.stdout.split("\n")[:-1]


def main():
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "bin").mkdir()
        (place / "bin/ccache").write_text(CCACHE, encoding="utf-8")
        (place / "bin/ccache").chmod(0o755)
        header = ["g++", "-x", "c++-header", "-DX=a b", "-o", "old.gch", "-c", "it.cxx"]
        source = ["g++", "-include", "old.gch", "-o", "old.o", "-c", "it.cpp"]
        for arguments, files in ((header, ["bin", "old.o", "depend: 1"]), (source, ["bin", "old.gch", "old.o", "depend: no"])):
            if found(place, arguments) != files + arguments:
                sys.exit(f"{arguments}: {found(place, arguments)}, not {files + arguments}")


if __name__ == "__main__":
    main()
