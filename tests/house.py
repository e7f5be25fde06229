#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that a script can see: who includes whom, how long a file is, the licence line.

usage: house.py            checks all tracked and new files of this repository
       house.py self-test  checks that each rule can fail
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Layer -> the layers that it may include, besides itself (src/README.md has the same table).
BASE, IR, OPS = {"base"}, {"base", "ir"}, {"base", "ir", "ops"}
REWRITE = OPS | {"rewrite"}
RULES = REWRITE | {"rules"}
DEVICE = IR | {"plan", "device"}
PASSES = RULES | DEVICE | {"passes"}
RUNTIME = PASSES | {"compile", "runtime", "import"}
MAY_INCLUDE = {
    "src/base": BASE,
    "src/ir": IR,
    "src/ops": OPS,
    "src/rewrite": REWRITE,
    "src/rules": RULES,
    "src/plan": IR,
    "src/device": DEVICE,
    "src/passes": PASSES,
    "src/compile": PASSES | {"compile"},
    "src/import": OPS,
    "src/runtime": RUNTIME,
    "src/capi": RUNTIME | {"rlx.h"},
    "backends/reference": DEVICE | {"ops"},
    "backends/cpu": DEVICE | {"ops"},
    "backends/null": DEVICE,
    "backends/far": DEVICE,
    "examples": {"rlx.h"},
    "bench": {"rlx.h"},
}
# Single files that may include one thing more: the table of ops.
EXCEPTIONS = {
    ("src/ir/op.h", "ops/ops.def"),
}

LONGEST = 600
TABLES = re.compile(r"(\.def|\.map|/rlx\.h)$|(^|/)generated")
CODE = re.compile(r"\.(c|h|cpp|inl|def|py|sh|cmake)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def layer_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("src", "backends") else parts[0]


def target_of(include, path):
    """The layer that an include names: "ir/graph.h" -> "ir"; a bare name is the neighbour or the public header."""
    parts = include.split("/")
    if parts[0] == "backends":
        return "/".join(parts[:2])
    if len(parts) > 1:
        return parts[0]
    return include if include == "rlx.h" else layer_of(path)


def include_faults(path, text):
    layer = layer_of(path)
    if layer not in MAY_INCLUDE:
        if path.startswith(("src/", "backends/")):
            yield f"{path}: the folder {layer} has no row in tests/house.py"
        return
    for include in INCLUDE.findall(text):
        target = target_of(include, path)
        own = target in (layer, layer.removeprefix("src/"))
        excepted = any(path == file and include.startswith(what) for file, what in EXCEPTIONS)
        if not own and not excepted and target not in MAY_INCLUDE[layer]:
            yield f'{path}: {layer} may not include "{include}"'


# What stands between an opening brace, or `new`, and a RLX_TRY that leaves the function from inside of it.
IN_NEW = re.compile(r"\bnew [\w:]+[({][^;]*?\bRLX_TRY")
IN_LIST = re.compile(r"(?:(?<=[\w>({,])|(?<=return )|(?<=[,=] ))\{[^;{}]*(?:\{[^;{}]*\}[^;{}]*)*,[^;{}]*\bRLX_TRY")
COMMENT = re.compile(r"//.*")


def leaves_early(text):
    """A RLX_TRY that fails inside of `new`, or after the first element of a braced list, leaks what is made by then."""
    text = COMMENT.sub("", text)
    for place in (IN_NEW, IN_LIST):
        for found in place.finditer(text):
            yield text.count("\n", 0, found.end()) + 1


# The types of a source file at the top of a named namespace. A second one of the same name breaks the one-definition
# rule: the linker takes either for both.
SCOPE = re.compile(r"^namespace ?([\w:]*) ?\{|^\}  // namespace|^(?:struct|class|union) (\w[\w:]*)[^;(]*\{", re.MULTILINE)


def types_of(text):
    scopes = []
    for found in SCOPE.finditer(text):
        if found[0].startswith("namespace"):
            scopes.append(found[1])
        elif found[0].startswith("}"):
            del scopes[-1:]
        elif "" not in scopes:
            yield "::".join(scopes + [found[2]])


def doubles(files):
    home = {}
    for path, text in files:
        for name in types_of(text) if path.startswith(("src/", "backends/")) and path.endswith((".h", ".cpp")) else []:
            if home.setdefault(name, path) != path:
                yield f"{path}: {home[name]} has a type {name} as well: put one in an unnamed namespace"


def faults(path, text):
    yield from include_faults(path, text)
    for line in leaves_early(text) if CODE.search(path) and not path.endswith(".py") else []:
        yield f"{path}:{line}: RLX_TRY inside of `new` or of a braced list: a failure leaks what was made before it"
    lines = text.count("\n")
    if CODE.search(path) and not TABLES.search(path) and lines > LONGEST:
        yield f"{path}: {lines} lines, more than {LONGEST}"
    if CODE.search(path) and "SPDX-License-Identifier: Apache-2.0" not in text[:300]:
        yield f"{path}: no SPDX line"


def self_test():
    spdx = "// SPDX-License-Identifier: Apache-2.0\n"
    for path, text, expected in [
        ("src/ir/a.cpp", spdx + '#include "base/status.h"\n#include "ir/graph.h"\n', 0),
        ("src/ir/a.cpp", spdx + '#include "ops/eval.h"\n', 1),
        ("src/ir/op.h", spdx + '#include "ops/ops.def"\n', 0),
        ("src/base/a.h", spdx + '  # include "ir/graph.h"\n', 1),
        ("src/runtime/a.cpp", spdx + '#include "backends/cpu/blas.h"\n', 1),
        ("src/compile/a.cpp", spdx + '#include "capi/guard.h"\n', 1),
        ("backends/cpu/a.cpp", spdx + '#include "backends/cpu/isa.h"\n#include "ops/eval.h"\n', 0),
        ("backends/null/a.cpp", spdx + '#include "backends/cpu/isa.h"\n', 1),
        ("bench/a.cpp", spdx + '#include "base/status.h"\n', 1),
        ("src/new/a.cpp", spdx, 1),
        ("src/ir/a.cpp", spdx + "\n" * 600, 1),
        ("src/ops/ops.def", spdx + "\n" * 600, 0),
        ("src/ir/a.cpp", "int x;\n", 1),
        ("src/ir/a.cpp", spdx + "auto* a = new A(RLX_TRY(read()));\n", 1),
        ("src/ir/a.cpp", spdx + "return A{name, RLX_TRY(read())};\n", 1),
        ("src/ir/a.cpp", spdx + "call({{a, read()}, {b, RLX_TRY(read())}});\n", 1),
        ("src/ir/a.cpp", spdx + "return A{RLX_TRY(read())};\n", 0),
        ("src/ir/a.cpp", spdx + "if (a) {\n  call(b, c);\n  RLX_TRY(read());\n}\n", 0),
    ]:
        found = list(faults(path, text))
        if len(found) != expected:
            sys.exit(f"self-test: expected {expected} faults, found {found}")


    twins = [("src/ir/a.h", "namespace rlx {\nstruct A {\n};\n}  // namespace rlx\n"),
             ("src/ir/b.cpp", "namespace rlx {\nstruct A {\n};\n}  // namespace rlx\n"),
             ("src/ir/c.cpp", "namespace rlx {\nnamespace {\nstruct A {\n};\n}  // namespace\n}  // namespace rlx\n")]
    if len(list(doubles(twins))) != 1:
        sys.exit("self-test: two types of one name were not told apart")


def main():
    if sys.argv[1:] == ["self-test"]:
        return self_test()
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [path for path in listed.split("\0") if (ROOT / path).is_file() and CODE.search(path)]
    files = [(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths]
    found = [fault for path, text in files for fault in faults(path, text)] + list(doubles(files))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
