#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages say about the repository is so: numbers, files, and code that they quote.

usage: docs.py            checks README.md, src/README.md, CONTRIBUTING.md
       docs.py self-test  checks that each check can fail

NAME, FAMILY and CASE in a path stand for any word. Code stands in a page as ```cpp PATH: every line of it is a line of that file, in the same order. A line of three dots skips
some.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md", "src/README.md", "CONTRIBUTING.md"]
FOLDERS = "src|tests|backends|abi-tests|include|examples|bench|cmake|pkgconfig"


def node_kinds():
    total = 0
    for path in sorted((ROOT / "src/import/onnx").glob("*.cpp")):
        for table in re.findall(r"kKinds\[\] = \{\n(.*?)\n\};", path.read_text(encoding="utf-8"), re.DOTALL):
            total += len(re.findall(r'^    \{(?:\.op_type = )?"', table, re.MULTILINE))
    return total


def op_groups(kind):
    """The cell of README.md for RLX_PRIMITIVE or RLX_COMPOSITE: "71: 3 leaves; 33 elementwise", as ops.def is divided."""
    text = (ROOT / "src/ops/ops.def").read_text(encoding="utf-8")
    groups = []
    header = r"^// ---- (?:composites: )?([^\n]*?) \([^()\n]*\d\)[^\n]*$"
    for title, body in re.findall(header + r"(.*?)(?=^// ----|\Z)", text, re.MULTILINE | re.DOTALL):
        number = len(re.findall(rf"^RLX_{kind}\(", body, re.MULTILINE))
        if number:
            groups.append((number, title))
    return f"{sum(number for number, _ in groups)}: " + "; ".join(f"{number} {title}" for number, title in groups)


def facts():
    """(what README.md says, with a group that holds it; what the source says) of all that changes as the library grows."""
    onnx = (ROOT / "src/import/onnx/onnx.cpp").read_text(encoding="utf-8")
    first, last = re.search(r"kMinOpset = (\d+), kMaxOpset = (\d+)", onnx).groups()
    yield r"\| primitive ops \| (.*?) \|", op_groups("PRIMITIVE")
    yield r"\| composite ops \| (.*?) \|", op_groups("COMPOSITE")
    yield r"(\d+) kinds of nodes", node_kinds()
    yield r"opsets (\d+) to", int(first)
    yield r"opsets \d+ to (\d+)", int(last)


def wrong_facts(text, known):
    for pattern, number in known:
        said = re.findall(pattern, text)
        if said != [str(number)]:
            yield f"README.md: '{pattern}' finds {said}, the source says: {number}"


def missing_files(page, text):
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for path in re.findall(rf"`((?:{FOLDERS})/[\w./*-]+)`", prose):
        if not list(ROOT.glob(re.sub(r"\b(NAME|FAMILY|CASE)\b", "*", path).rstrip("/"))):
            yield f"{page}: there is no {path}"


def wrong_quotes(page, text):
    for path, code in re.findall(r"^ *```cpp (\S+)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        if not (ROOT / path).is_file():
            yield f"{page}: quotes {path}, which is not there"
            continue
        lines = iter((ROOT / path).read_text(encoding="utf-8").splitlines())
        for line in code.splitlines():
            if line.strip() and line.strip() != "..." and not any(line.strip() == other.strip() for other in lines):
                yield f"{page}: {path} has no such line, or not there: {line.strip()}"
                break


def faults():
    yield from wrong_facts((ROOT / "README.md").read_text(encoding="utf-8"), facts())
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        yield from missing_files(page, text)
        yield from wrong_quotes(page, text)


def self_test():
    quote = "```cpp tests/docs.py\n{}\n```\n"
    for found, expected in [
        (wrong_facts("all 7 of the op table", [(r"all (\d+) of", 7)]), 0),
        (wrong_facts("all 7 of the op table", [(r"all (\d+) of", 8)]), 1),
        (wrong_facts("", [(r"all (\d+) of", 8)]), 1),
        (missing_files("a page", "`tests/docs.py` `tests/*.py` `tests/NAME.py` `other/thing`"), 0),
        (missing_files("a page", "`tests/nothing.py` `src/*.nothing`"), 2),
        (wrong_quotes("a page", quote.format("import pathlib\n...\nimport sys")), 0),
        (wrong_quotes("a page", quote.format("import sys\nimport pathlib")), 1),
        (wrong_quotes("a page", quote.format("import nothing")), 1),
        (wrong_quotes("a page", "```cpp tests/nothing.py\n```\n"), 1),
    ]:
        found = list(found)
        if len(found) != expected:
            sys.exit(f"self-test: expected {expected} faults, found {found}")


def main():
    if sys.argv[1:] == ["self-test"]:
        return self_test()
    found = list(faults())
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
