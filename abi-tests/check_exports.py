# SPDX-License-Identifier: Apache-2.0
"""Header, version script and library name the same functions, and each is documented and in the changelog.

usage: check_exports.py rlx.h librlx.map CHANGELOG.md librlx.so [nm]
"""
import re
import subprocess
import sys

import header


def in_map(path):
    """{function: version node}; every name is spelled out, no pattern but the final `local: *`."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"#.*", "", file.read())
    found = {}
    for node, body in re.findall(r"(\S+)\s*\{(.*?)\}", text, re.S):
        for name in re.findall(r"([^\s:;]+)\s*;", body.split("local:")[0].split("global:")[-1]):
            found[name] = node
    return found


def in_library(nm, path):
    """[(type letter, name, version node)] of everything that is defined and dynamic."""
    out = subprocess.run([nm, "-D", "--defined-only", "--with-symbol-versions", path], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    symbols = []
    for line in out.splitlines():
        _, letter, versioned = line.split()
        name, _, node = versioned.partition("@@")
        symbols.append((letter, name, node))
    return symbols


def main(header_path, map_path, changelog_path, library_path, nm="nm"):
    errors = []
    functions = header.read(header_path)
    declared = {f.name for f in functions}
    nodes = in_map(map_path)
    exported = {}
    for letter, name, node in in_library(nm, library_path):
        if letter == "A" and name in nodes.values():
            continue  # the version node itself
        if letter != "T":
            errors.append(f"{name}: exported as '{letter}', only functions (T) may be")
        exported[name] = node

    for name in sorted(declared | set(nodes) | set(exported)):
        where = [what for what, names in (("header", declared), ("map", nodes), ("library", exported)) if name in names]
        if len(where) < 3:
            errors.append(f"{name}: only in {' and '.join(where)}")
        elif exported[name] != nodes[name]:
            errors.append(f"{name}: node {exported[name]} in the library, {nodes[name]} in the map")

    for function in functions:
        if len(function.comment) < 12:
            errors.append(f"{function.name}: no documentation comment")
        if ("rlx_status_t" in function.result) != function.must_use and not function.name.startswith("rlx_status_"):
            errors.append(f"{function.name}: RLX_MUST belongs to functions that return a new status, and only to them")
    with open(changelog_path, encoding="utf-8") as file:
        listed = re.findall(r"^- ABI: `(\w+)` \((\S+)\)$", file.read(), re.M)
    for name, node in listed:
        if nodes.get(name) != node:
            errors.append(f"{name}: the changelog says {node}, the map {nodes.get(name)}")
    errors += [f"{name}: no ABI line in the changelog" for name in sorted(declared - {name for name, _ in listed})]

    print("\n".join(errors) or f"{len(declared)} functions: header, map, library and changelog agree")
    return 1 if errors or not declared else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
