# SPDX-License-Identifier: Apache-2.0
"""rlx.h compiles as every C and C++ that it promises: alone, twice, with short enums, with unsigned char.

usage: check_header.py rlx.h C|C++ COMPILER     exit 77: the compiler is not installed
"""
import itertools
import pathlib
import shutil
import subprocess
import sys
import tempfile

STANDARDS = {"C": ["c89", "c99", "c11", "c17", "c2x"], "C++": ["c++98", "c++11", "c++14", "c++17", "c++20", "c++2b"]}
STRICT = ["-pedantic-errors", "-Werror", "-Wall", "-Wextra", "-fsyntax-only"]
# What -Weverything says about every program that must also be C89 or C++98, or that includes a system header.
EVERYTHING = ["-Weverything", "-Wno-padded", "-Wno-c++98-compat", "-Wno-c++98-compat-pedantic"]
VARIANTS = {
    "alone": ('#include "rlx.h"\n', []),
    "twice": ('#include "rlx.h"\n#include "rlx.h"\n', []),
    "after system headers": ('#include <stdio.h>\n#include <stdlib.h>\n#include "rlx.h"\n', []),
    "short enums": ('#include "rlx.h"\n', ["-fshort-enums"]),
    "unsigned char": ('#include "rlx.h"\n', ["-funsigned-char"]),
}
USE = "rlx_code_t code(const rlx_status_t *s);\nrlx_code_t code(const rlx_status_t *s) { return rlx_status_code(s); }\n"


def main(header_path, language, compiler):
    if not shutil.which(compiler):
        print(f"skipped: {compiler} is not installed")
        return 77
    include = pathlib.Path(header_path).resolve().parent
    suffix = {"C": ".c", "C++": ".cpp"}[language]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "use" + suffix)
        for standard, (variant, (text, flags)) in itertools.product(STANDARDS[language], VARIANTS.items()):
            source.write_text(text + USE, encoding="utf-8")
            extra = EVERYTHING if "clang" in compiler else []
            command = [compiler, f"-std={standard}", f"-I{include}", *STRICT, *extra, *flags, str(source)]
            run = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if run.returncode or run.stdout:
                failures += 1
                print(f"{compiler} -std={standard}, {variant}:\n{run.stdout}")
    print(f"{compiler}: {len(STANDARDS[language]) * len(VARIANTS)} ways to include rlx.h, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
