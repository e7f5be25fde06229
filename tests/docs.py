#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages say about the repository is so: numbers, files, and code that they quote. What the code says about the
pages is so too: a page that it names is there, and has the rule.

usage: docs.py [LIBRARY]      checks the pages, and what tracked sources cite; by librlx.so also docs/ops.md and what else
                              pages say of the op table
       docs.py bless LIBRARY  writes docs/ops.md, docs/onnx.md, and the facts in README.md
       docs.py self-test      checks that each check can fail

NAME, FAMILY and CASE in a path stand for any word. Code stands in a page as ```cpp PATH: every line of it is a line of
that file, in the same order. A line of three dots skips some.
"""
import ctypes
import json
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md", "src/README.md", "CONTRIBUTING.md", "docs/semantics.md", "docs/ops.md", "docs/onnx.md"]
OPS_PAGE = ROOT / "docs/ops.md"
ONNX_PAGE = ROOT / "docs/onnx.md"
FOLDERS = "docs|src|tests|backends|abi-tests|include|examples|bench|cmake|pkgconfig"
CODE = ["*.c", "*.h", "*.cpp", "*.inl", "*.def", "*.py", "*.sh", "*.rlx", "*.cmake", "*CMakeLists.txt", "dev"]


def node_kind(row, named):
    """(domain, name) of a row of a table of node kinds; none if it is not one. `named`: domains that have a constant."""
    makers = {"machine_learning": "ai.onnx.ml", "microsoft": "com.microsoft"}
    kind = re.match(r'(?:\{(?:\.op_type = )?|(microsoft|machine_learning)\()"(\w+)"', row)
    if not kind:
        return None
    if kind[1]:
        return makers[kind[1]], kind[2]
    constant = r"\b(" + "|".join(named or ["-"]) + r")\b"
    said = re.search(r'\.domain = "([\w.]+)"', row) or re.search(constant, row)
    return named.get(said[1], said[1]) if said else "ai.onnx", kind[2]


def node_kinds():
    """(domain, name) of each node kind that the importer knows."""
    for path in sorted((ROOT / "src/import/onnx").glob("*.cpp")):
        source = path.read_text(encoding="utf-8")
        named = dict(re.findall(r'(k\w+) = "(ai\.onnx[\w.]*)"', source))
        for table in re.findall(r"kKinds\[\] = \{\n(.*?)\n\};", source, re.DOTALL):
            rows = re.split(r"^    (?=\S)", table, flags=re.MULTILINE)
            yield from filter(None, (node_kind(row, named) for row in rows))


def op_groups():
    """(title, [name ...]) as ops.def is divided, but for internal ops."""
    text = (ROOT / "src/ops/ops.def").read_text(encoding="utf-8")
    for title, body in re.findall(r"^// ---- ([^\n]*?) ----$(.*?)(?=^// ----|\Z)", text, re.MULTILINE | re.DOTALL):
        names = re.findall(r"^RLX_[A-Z]+\(\d+, \w+, (\w+)", body, re.MULTILINE)
        if names and not title.startswith("internal"):
            yield title, names


def counts(is_composite):
    """The cell of README.md: "71: 3 leaves; 33 elementwise"."""
    groups = [(len(names), re.sub("^composites: ", "", title).split(":")[0]) for title, names in op_groups()
              if title.startswith("composites") == is_composite]
    return f"{sum(number for number, _ in groups)}: " + "; ".join(f"{number} {title}" for number, title in groups)


def facts():
    """(what README.md says, with a group that holds it; what the source says) of all that changes as the library grows."""
    onnx = (ROOT / "src/import/onnx/onnx.cpp").read_text(encoding="utf-8")
    first, last = re.search(r"kMinOpset = (\d+), kMaxOpset = (\d+)", onnx).groups()
    yield r"\| primitive ops \| (.*?) \|", counts(is_composite=False)
    yield r"\| composite ops \| (.*?) \|", counts(is_composite=True)
    yield r"(\d+) kinds of nodes", sum(1 for _ in node_kinds())
    yield r"opsets (\d+) to", int(first)
    yield r"opsets \d+ to (\d+)", int(last)


def facts_of_library(ops):
    """As facts, by what the library says of itself."""
    own = [op for op in ops if op["kernels"]["cpu"]]
    composites = sum(op["composite"] for op in own)
    yield r"(\d+ primitive and \d+ composite) ops have kernels", f"{len(own) - composites} primitive and {composites} composite"
    yield r"\| devices \| (.*?)[:;]", ", ".join(f"`{device}`" for device in ops[0]["kernels"])


def wrong_facts(text, known):
    for pattern, number in known:
        said = re.findall(pattern, text)
        if said != [str(number)]:
            yield f"README.md: '{pattern}' finds {said}, the source says: {number}"


def with_facts(text, known):
    for pattern, number in known:
        text = re.sub(pattern, lambda said, number=number: said[0].replace(said[1], str(number)), text)
    return text


# ---- docs/ops.md ----

def schema(library):
    """All ops, as rlx_schema gives them."""
    rlx, env, blob, size = ctypes.CDLL(str(library)), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    for function in (rlx.rlx_env_create, rlx.rlx_schema, rlx.rlx_blob_data):
        function.restype = ctypes.c_void_p
    failed = rlx.rlx_env_create(None, None, ctypes.byref(env)) or rlx.rlx_schema(env, b"ops", ctypes.byref(blob))
    if failed:
        sys.exit(f"{library} gives no schema")
    rlx.rlx_blob_size.restype = ctypes.c_size_t
    text = ctypes.string_at(rlx.rlx_blob_data(blob), rlx.rlx_blob_size(blob))
    rlx.rlx_blob_release(blob)
    rlx.rlx_env_release(env)
    return json.loads(text)["ops"]


def port_text(port):
    marks = "?" * port["optional"] + "..." * port["variadic"]
    return port["name"] + marks + (":" + port["dtypes"] if port["dtypes"] else "")


def attribute_text(attribute):
    text = f"{attribute['name']}: {attribute.get('choices', attribute['kind'])}"
    # 2^48 and its negative are the limits of all sizes.
    limits = [f"{sign} {attribute[key]:.15g}" for sign, key in ((">=", "min"), ("<=", "max"))
              if key in attribute and abs(attribute[key]) < 2**48]
    if attribute["required"]:
        limits.append("required")
    elif attribute["default"] is not None:
        default = bool(attribute["default"]) if attribute["kind"] == "bool" else attribute["default"]
        text += " = " + json.dumps(default).strip('"')
    return text + (f" ({', '.join(limits)})" if limits else "")


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def row(op):
    signature = ", ".join(map(port_text, op["inputs"])) + " -> " + ", ".join(map(port_text, op["outputs"]))
    kernels = "; ".join(f"{device}: {', '.join(names)}" for device, names in op["kernels"].items() if names)
    attributes = "<br>".join(cell(attribute_text(it)) for it in op["attributes"])
    return f"| `{op['name']}` | {cell(signature)} | {cell(op['summary'])} | {attributes} | {kernels} |"


def ops_page(ops):
    by_name = {op["name"]: op for op in ops}
    yield "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    yield "# Ops"
    yield "`./dev bless` makes this page from `rlx_schema(env, \"ops\")`: change `src/ops/ops.def`, not this page."
    yield ""
    yield "`docs/semantics.md` has the rules for all ops, and the dtypes of each letter (F: f16 bf16 f32 f64); NZ means N or Z."
    yield "An input with `?` may be absent; `...` means one or more. Inputs with the same letter have one dtype; a prime (`F'`) makes"
    yield "a letter independent. The dtype of an output without a letter follows from the attributes."
    yield ""
    yield "Every device that computes runs every op. The last column names the kernels of each device; a kernel takes only some dtypes"
    yield "and forms. Without a kernel a primitive runs in plain loops, and a composite as the primitives of its decomposition."
    yield "`reference` runs all ops in this way, in f64."
    for title, names in op_groups():
        known = [by_name[name] for name in names if name in by_name]
        if known:
            yield ""
            yield f"## {title[0].upper()}{title[1:]}"
            yield "| op | signature | meaning | attributes | kernels |"
            yield "|---|---|---|---|---|"
            yield from map(row, known)


# ---- docs/onnx.md ----

def onnx_page(kinds, opsets):
    yield "<!-- SPDX-License-Identifier: Apache-2.0 -->"
    yield "# ONNX nodes"
    yield "`./dev bless` makes this page from the tables in `src/import/onnx`."
    yield ""
    yield f"These {len(kinds)} kinds of nodes are imported, at opsets {opsets} of ai.onnx. Any other kind is refused by its name, unless the file"
    yield "defines it as a function. A node of a kind below may still be refused, for an attribute or a type: the message"
    yield "names the node and says why. `tests/conformance/onnx-unsupported.txt` lists what of ONNX's own test cases is refused."
    for domain in sorted({domain for domain, _ in kinds}):
        yield ""
        yield f"## {domain}"
        names = [f"`{name}`" for known, name in sorted(kinds, key=lambda kind: kind[1].lower()) if known == domain]
        yield from textwrap.wrap(", ".join(names), 120, break_long_words=False, break_on_hyphens=False)


def onnx_text():
    opsets = " to ".join(str(number) for pattern, number in facts() if "opsets" in pattern)
    return "\n".join(onnx_page(list(node_kinds()), opsets)) + "\n"


def page_text(ops):
    return "\n".join(ops_page(ops)) + "\n"


def stale_page(said, ops):
    if said != page_text(ops):
        yield "docs/ops.md does not say what the op table says: ./dev bless"


def bless(library):
    ops, page = schema(library), ROOT / "README.md"
    OPS_PAGE.write_text(page_text(ops), encoding="utf-8")
    ONNX_PAGE.write_text(onnx_text(), encoding="utf-8")
    page.write_text(with_facts(page.read_text(encoding="utf-8"), [*facts(), *facts_of_library(ops)]), encoding="utf-8")


# ---- files, quotes, citations ----

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


def faults(library):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    yield from wrong_facts(readme, facts())
    if ONNX_PAGE.read_text(encoding="utf-8") != onnx_text():
        yield "docs/onnx.md does not say what the tables of node kinds say: ./dev bless"
    if library:
        ops = schema(library)
        yield from wrong_facts(readme, facts_of_library(ops))
        yield from stale_page(OPS_PAGE.read_text(encoding="utf-8"), ops)
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        yield from missing_files(page, text)
        yield from wrong_quotes(page, text)
    yield from all_wrong_citations()


def self_test():
    def cited(text):
        return wrong_citations("a file", text, ["src/README.md", "docs/semantics.md"], {"N1", "N3", "S2"})

    op = {"name": "exp", "composite": False, "summary": "a|b", "outputs": [], "attributes": [], "kernels": {"cpu": ["k"]},
          "inputs": [{"name": "x", "dtypes": "F", "types": ["f32"], "optional": True, "variadic": False}]}
    quote = "```cpp tests/docs.py\n{}\n```\n"
    for found, expected in [
        (wrong_facts("all 7 of the op table", [(r"all (\d+) of", 7)]), 0),
        (wrong_facts("all 7 of the op table", [(r"all (\d+) of", 8)]), 1),
        (wrong_facts("", [(r"all (\d+) of", 8)]), 1),
        (wrong_facts(with_facts("all 8 of the op table", [(r"all (\d+) of", 7)]), [(r"all (\d+) of", 7)]), 0),
        (stale_page(page_text([op]), [op]), 0),
        (stale_page(page_text([op]), [{**op, "inputs": []}]), 1),
        (["x" for text in [row(op)] if text != "| `exp` | x?:F ->  | a\\|b |  | cpu: k |"], 0),
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
    if sys.argv[1:2] == ["bless"]:
        return bless(sys.argv[2])
    found = list(faults(sys.argv[1] if len(sys.argv) > 1 else None))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
