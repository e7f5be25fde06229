#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages say about the repository is so: numbers, files, and code that they quote. What the code says about the
pages is so too: a page that it names is there, and has the rule.

usage: docs.py            checks the pages, and what tracked sources cite
       docs.py self-test  checks that each check can fail

NAME, FAMILY and CASE in a path stand for any word. Code stands in a page as ```cpp PATH: every line of it is a line of that file, in the same order. A line of three dots skips
some.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md", "src/README.md", "CONTRIBUTING.md", "docs/semantics.md"]
FOLDERS = "docs|src|tests|backends|abi-tests|include|examples|bench|cmake|pkgconfig"
CODE = ["*.c", "*.h", "*.cpp", "*.inl", "*.def", "*.py", "*.sh", "*.rlx", "*.cmake", "*CMakeLists.txt", "dev"]


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
    header = r"^// ---- (?:composites: )?([^:\n]*?)(?:: [^\n]*)? ----$"
    for title, body in re.findall(header + r"(.*?)(?=^// ----|\Z)", text, re.MULTILINE | re.DOTALL):
        number = len(re.findall(rf"^RLX_{kind}\(", body, re.MULTILINE))
        if number and title != "internal":
            groups.append((number, title))
    return f"{sum(number for number, _ in groups)}: " + "; ".join(f"{number} {title}" for number, title in groups)


def facts():
    """(what README.md says, with a group that holds it; what the source says) of all that changes as the library grows."""
    onnx = (ROOT / "src/import/onnx/onnx.cpp").read_text(encoding="utf-8")
    first, last = re.search(r"kMinOpset = (\d+), kMaxOpset = (\d+)", onnx).groups()
    yield r"\| primitive ops \| (.*?) \|", op_groups("(?:PRIMITIVE|WALKED)")
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


RULES = r"[A-Z]\d+(?:-[A-Z]\d+)?"


def wrong_citations(path, text, pages, rules):
    """Pages named by a source that are not there, and rules of docs/semantics.md that are not in it: C4, N1-N3."""
    for page in sorted({name.lstrip("./") for name in re.findall(r"[\w./-]*\w\.md\b", text)}):
        if not any(known == page or known.endswith("/" + page) for known in pages):
            yield f"{path}: cites {page}, which is no page of this repository"
    for cited in re.findall(rf"semantics\.md ({RULES}(?:(?:, | and ){RULES})*)", text):
        for rule in re.findall(r"[A-Z]\d+", cited):
            if rule not in rules:
                yield f"{path}: docs/semantics.md has no rule {rule}"


def tracked(*names):
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *names]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.split("\0") if path and (ROOT / path).is_file()]


def all_wrong_citations():
    rules = set(re.findall(r"\*\*([A-Z]\d+)\*\*", (ROOT / "docs/semantics.md").read_text(encoding="utf-8")))
    pages = tracked("*.md")
    for path in tracked(*CODE):
        if path != "tests/docs.py":  # which has wrong ones on purpose
            yield from wrong_citations(path, (ROOT / path).read_text(encoding="utf-8"), pages, rules)


def faults():
    yield from wrong_facts((ROOT / "README.md").read_text(encoding="utf-8"), facts())
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        yield from missing_files(page, text)
        yield from wrong_quotes(page, text)
    yield from all_wrong_citations()


def self_test():
    def cited(text):
        return wrong_citations("a file", text, ["src/README.md", "docs/semantics.md"], {"N1", "N3", "S2"})

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
        (cited("see src/README.md, README.md and semantics.md N1-N3, S2"), 0),
        (cited("see OTHER.md 1.2"), 1),
        (cited("see semantics.md N1-N4, S9"), 2),
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
