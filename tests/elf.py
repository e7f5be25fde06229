#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What librlx.so needs and how it is linked, and that loading it runs no code of ours.

usage: elf.py READELF librlx.so OBJECT...
"""
import re
import subprocess
import sys

# No Fortran, no second BLAS, no libquadmath: OpenBLAS and xxHash are inside.
MAY_NEED = re.compile(r"^(libc|libm|libstdc\+\+|libgcc_s|libhwloc|ld-linux-x86-64)\.so\.\d+$")


# A static object with a constructor costs every program that loads the library. These two say why they need one.
MAY_CONSTRUCT = ("src/base/status.cpp", "backends/cpu/blas_buffers.cpp")


def constructing(sections):
    """The files, of the output of readelf -S, that have code to run when they are loaded."""
    file = ""
    for line in sections.splitlines():
        file = line.removeprefix("File: ") if line.startswith("File: ") else file
        if ".init_array" in line and ".rela" not in line and ".cpp." in file:
            yield file


def main(readelf, library, *objects):
    def read(*options, files=(library,)):
        return subprocess.run([readelf, "-W", *options, *files], check=True, capture_output=True, text=True).stdout

    dynamic, symbols = read("-d"), read("--dyn-syms")
    faults = [f"needs {name}" for name in re.findall(r"NEEDED\).*\[(.*)\]", dynamic) if not MAY_NEED.match(name)]
    if not re.search(r"SONAME\).*\[librlx\.so\.\d+\]", dynamic):
        faults.append("has no SONAME librlx.so.N")
    faults += [f"has no {flag}" for flag in ("SYMBOLIC", "BIND_NOW") if flag not in dynamic]
    faults += [f"has {word}" for word in ("TEXTREL", "RPATH", "RUNPATH") if word in dynamic]
    if "UNIQUE" in symbols:
        faults.append("exports a GNU_UNIQUE symbol, so that it could never be unloaded")
    for line in symbols.splitlines():
        word = line.split()
        defined = len(word) >= 8 and word[6] not in ("UND", "Ndx", "ABS") and word[4] in ("GLOBAL", "WEAK")
        if defined and not word[7].startswith("rlx_"):
            faults.append(f"exports {word[7]}")
    for file in constructing(read("-S", files=objects)):
        if not any(allowed + ".o" in file for allowed in MAY_CONSTRUCT):
            faults.append(f"{file} has a static object with a constructor")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
