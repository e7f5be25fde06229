#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in a copy of this tree, one at a time, and says which of them the tests see.

usage: mutate.py COUNT SEED [FOLDER ...]  COUNT faults that compile and change code, drawn by SEED from these folders
       mutate.py self-test                checks where a fault may stand, and where none

What no test sees is either no fault, as the meaning is the same, or a hole in the tests: build/mutate/report.txt lists
them for a person to decide. On the same tree the same arguments draw the same faults, and a run that was stopped goes on
where it stopped.
"""
import collections
import difflib
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import tidy

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "build/mutate"
TREE, BUILD = PLACE / "tree", PLACE / "build"
FOLDERS = ["src/ir", "src/ops", "src/rules", "src/rewrite", "src/passes", "src/plan"]

# The programs that look for a fault, cheap ones first. Of the random graphs, a short time instead of a minute.
PROGRAMS = [
    ("golden", []),
    ("unit", []),
    ("conformance", []),
    ("property", ["--gtest_filter=-random_graphs.keep_their_meaning"]),
    ("property", ["--seconds", "10", "--seed", "1"]),
    ("kernels", []),
    ("models", []),
]
FIRST_FAILURE = ["--gtest_fail_fast", "--gtest_brief=1"]

# A fault may loop for ever, or fill memory or the disk: it gets this many times the processor time of the sound program and
# so many seconds more. A limit by the clock would be wrong on a busy machine; a program that takes no processor time for so
# many seconds is a deadlock.
CPU_FACTOR, CPU_SECONDS, IDLE_SECONDS = 4, 10, 30
MEMORY, FILE_SIZE = 4 << 30, 256 << 20

# A header that more sources read is left out: a fault there is a build of minutes.
MOST_READERS = 50

# ---- from text to tokens ----

TOKEN = re.compile(r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<directive> ^[ \t]*\#(?:\\\n|[^\n])* )
  | (?P<string> (?:u8|[uUL])?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
  | (?P<char> (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
  | (?P<number> \.?\d(?:[eEpP][+-]|'\w|[\w.])* )
  | (?P<word> [A-Za-z_]\w* )
  | (?P<sign> <=>|<<=|>>=|\.\.\.|->\*|->|::|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S )
""", re.VERBOSE | re.MULTILINE | re.DOTALL)
Token = collections.namedtuple("Token", "kind text at end")
CLOSES = {")": "(", "]": "[", "}": "{"}


class Source:
    """The tokens of a text, without comments and directives; which brackets belong together; what is no place for a fault.
    The formatter puts blanks around a binary operator and none beside a template bracket, a pointer's * or a reference's
    &&: that tells them apart, where a compiler would have to know the types."""

    def __init__(self, text):
        self.text = text
        self.tokens = [Token(match.lastgroup if match.lastgroup != "mark" else "string", match[0], match.start(), match.end())
                       for match in TOKEN.finditer(text) if match.lastgroup not in ("comment", "directive")]
        self.partner, self.open = {}, []
        for i in range(len(self.tokens)):
            self.pair(i)
        self.barred = set()
        for i in range(len(self.tokens)):
            start = i + 1 if self.word(i) in ("static_assert", "assert") else i if self.word(i) == "<" else -1
            self.barred.update(range(i, self.partner.get(start, i)))

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def is_spaced(self, i):
        return self.text[self.tokens[i].at - 1].isspace() and self.text[self.tokens[i].end : self.tokens[i].end + 1].isspace()

    def opens(self, i):
        if self.word(i) == "<":
            return self.word(i - 1) == "template" or not self.is_spaced(i) and self.word(i - 1) != "operator"
        return self.word(i) in ("(", "[", "{")

    def pair(self, i):
        if self.opens(i):
            self.open.append(i)
        elif self.word(i) in (">", ">>"):  # the latter may close two
            for _ in self.word(i):
                self.close(i, "<")
        elif self.word(i) in CLOSES:
            while self.open and self.word(self.open[-1]) == "<":  # was none
                self.open.pop()
            self.close(i, CLOSES[self.word(i)])

    def close(self, i, opening):
        if self.open and self.word(self.open[-1]) == opening:
            start = self.open.pop()
            self.partner[start], self.partner[i] = i, start

    def outer(self, first, last):
        """The tokens from first to last that stand in no bracket opened there."""
        i = first
        while i <= last:
            yield i
            i = max(self.partner.get(i, i), i) + 1

    def outer_signs(self, first, last):
        return {self.word(i) for i in self.outer(first, last) if i not in self.partner}

    def between(self, first, last):
        return self.text[self.tokens[first].at : self.tokens[last].end]


# ---- kinds of faults: where one may stand (from token, to token), and what may stand there instead ----

EXCHANGED = {"+": "-", "-": "+", "+=": "-=", "-=": "+=", "*": "/", "/": "*", "*=": "/=", "/=": "*=", "<": "<=", "<=": "<",
             ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
EXTREMES = {"min": "max", "max": "min", "fmin": "fmax", "fmax": "fmin", "min_element": "max_element",
            "max_element": "min_element"}
TRUTHS = {"true": "false", "false": "true"}
COUNTS = {"size", "rank"}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!=", "&&", "||"}
ENDS_OPERAND = COMPARISONS | {")", "]", "}", ",", ";", ":", "?"}
BEFORE_CONDITION = {"(", "[", "{", ",", ";", ":", "?", "=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "return", "else"}
NUMBER = re.compile(r"(0[xX][\da-fA-F]+|0[bB][01]+|[\d.]+(?:[eE][-+]?\d+)?)([uUlLzZfF]*)")


def operators(source):
    for i, token in enumerate(source.tokens):
        joins_text = token.text == "+" and "string" in [near.kind for near in source.tokens[i - 1 : i + 2]]
        if token.text in EXCHANGED and source.is_spaced(i) and not joins_text:
            yield i, i, [EXCHANGED[token.text]]


def one_off(text):
    parts = NUMBER.fullmatch(text.replace("'", ""))
    if not parts:
        return []
    digits, suffix = parts.groups()
    based = re.match(r"0[xXbB]", digits)
    if not based and re.search(r"[.eE]", digits):
        value, spell = float(digits), repr
    else:
        value, spell = int(digits, 0 if based else 10), hex if based else str
    return [spell(other) + suffix for other in (value + 1, value - 1) if other >= 0]


def bounds(source):
    for i, token in enumerate(source.tokens):
        if token.kind == "number" and one_off(token.text):
            yield i, i, one_off(token.text)
        is_call = source.word(i - 1) in (".", "->") and source.word(i + 1) + source.word(i + 2) == "()"
        if token.text in COUNTS and is_call and source.word(i + 3) in ENDS_OPERAND:
            yield i, i + 2, [f"{token.text}() - 1", f"{token.text}() + 1"]


def extremes(source):
    for i, token in enumerate(source.tokens):
        if token.text in EXTREMES and source.word(i + 1) in ("(", "<"):
            yield i, i, [EXTREMES[token.text]]


def negated(source, first, last):
    """A lone == or != is left to the operators, where it would be the same fault."""
    signs = source.outer_signs(first, last)
    if first <= last and (signs & {"&&", "||"} or not signs & {"==", "!="}):
        yield first, last, [f"!({source.between(first, last)})"]


def of_branch(source, i):
    opening = i + 2 if source.word(i + 1) == "constexpr" else i + 1
    first, last = opening + 1, source.partner.get(opening, 0) - 1
    for j in source.outer(first, last):
        if source.word(j) == ";":
            first = j + 1
    declared = [j - 1 for j in source.outer(first, last) if source.word(j) == "="]
    if not declared:
        yield from negated(source, first, last)
    elif source.word(i) == "if" and source.tokens[declared[0]].kind == "word":
        yield first, last, [f"{source.between(first, last)}; !{source.word(declared[0])}"]


def of_choice(source, i):
    first = i
    while first > 0 and source.word(first - 1) not in BEFORE_CONDITION:
        first = min(source.partner.get(first - 1, first - 1), first - 1)
    yield from negated(source, first, i - 1)


def of_return(source, i):
    end = next((j for j in source.outer(i + 1, len(source.tokens) - 1) if source.word(j) == ";"), i + 1)
    signs = source.outer_signs(i + 1, end - 1)
    if end == i + 2 and source.word(i + 1) in TRUTHS:
        yield i + 1, i + 1, [TRUTHS[source.word(i + 1)]]
    elif "?" not in signs and (source.word(i + 1) == "!" or signs & COMPARISONS):
        yield from negated(source, i + 1, end - 1)


def conditions(source):
    of = {"if": of_branch, "while": of_branch, "?": of_choice, "return": of_return}
    for i, token in enumerate(source.tokens):
        if token.text in of:
            yield from of[token.text](source, i)


KINDS = [operators, bounds, extremes, conditions]
Fault = collections.namedtuple("Fault", "path at end after")


def sites(path, text):
    """Each place of a text: the faults that may stand there."""
    source = Source(text)
    for places in KINDS:
        for first, last, instead in places(source):
            if first not in source.barred:
                yield [Fault(path, source.tokens[first].at, source.tokens[last].end, after) for after in instead]


def draw(texts, seed):
    chance = random.Random(seed)
    places = [place for path in sorted(texts) for place in sites(path, texts[path])]
    chance.shuffle(places)
    return [chance.choice(place) for place in places]


# ---- what a person reads ----

WIDEST = 80


def planted(text, fault):
    return text[: fault.at] + fault.after + text[fault.end :]


def shown(text, fault):
    """path:line: before -> after, with the words beside it, as a lone operator tells a reader nothing."""
    left = re.search(r"\S*[^\S\n]*$", text[: fault.at])[0]
    right = re.match(r"[^\S\n]*\S*", text[fault.end :])[0]
    both = (left + middle + right for middle in (text[fault.at : fault.end], fault.after))
    before, after = (textwrap.shorten(words, WIDEST, placeholder=" ...") for words in both)
    return f"{fault.path}:{text.count(chr(10), 0, fault.at) + 1}: {before} -> {after}"


def diff(text, fault):
    lines = difflib.unified_diff(text.splitlines(), planted(text, fault).splitlines(), fault.path, fault.path, lineterm="")
    return "\n".join(lines)


# ---- the copy ----

def copy_tree():
    """Makes TREE equal to this tree, touching what differs only, so that little is built again; the hash of all of it."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout
    digest, wanted = hashlib.sha256(), set()
    for path in sorted(filter(None, listed.split("\0"))):
        if not (ROOT / path).is_file():
            continue
        wanted.add(TREE / path)
        content = (ROOT / path).read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
        if not (TREE / path).is_file() or (TREE / path).read_bytes() != content:
            (TREE / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, TREE / path)
    for path in [path for path in TREE.rglob("*") if path.is_file() and path not in wanted]:
        path.unlink()
    return digest.hexdigest()


def configure():
    if (BUILD / "build.ninja").is_file():
        return
    linker = next((f"-fuse-ld={name}" for name in ("mold", "lld") if shutil.which(name)), "")
    flags = [f"-DCMAKE_{language}_FLAGS_RELEASE=-O1" for language in ("C", "CXX")]
    subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DRLX_BENCH=OFF",
                    f"-DCMAKE_EXE_LINKER_FLAGS={linker}", *flags], check=True, stdout=subprocess.DEVNULL)


def build(*targets):
    """What went wrong, or "". The first target that fails ends it."""
    done = subprocess.run(["ninja", "-C", BUILD, *targets], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode else ""


def code_of_library():
    folder = BUILD / "CMakeFiles/rlx_objects.dir"
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*.o")}


def texts_of(folders):
    """The sources and headers of the folders, without headers that too many sources read."""
    readers = collections.Counter(path for paths in tidy.files_read(BUILD).values() for path in paths)
    texts = {}
    for folder in folders:
        for path in [TREE / folder, *(TREE / folder).rglob("*")]:
            if path.suffix == ".cpp" or path.suffix in (".h", ".inl") and readers[str(path)] <= MOST_READERS:
                texts[str(path.relative_to(TREE))] = path.read_text(encoding="utf-8")
    return texts


# ---- running the tests ----

def set_limits(cpu):
    limits = [(resource.RLIMIT_CPU, cpu), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE_SIZE),
              (resource.RLIMIT_CORE, 0)]
    for what, limit in limits:
        resource.setrlimit(what, (limit, limit))


def failure_of(status, output):
    if status in (None, -signal.SIGXCPU, -signal.SIGKILL):
        return "time limit"
    failed = re.search(r"^\[  FAILED  \] ([\w./]+)", output, re.MULTILINE)
    return failed[1] if failed else f"signal {-status}" if status < 0 else f"exit {status}"


def status_of(child):
    """How it ended, or None if it waits for what does not come."""
    used = None
    while True:
        try:
            return child.wait(IDLE_SECONDS)
        except subprocess.TimeoutExpired:
            fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
            before, used = used, fields[11:13]  # user and system time
            if used == before:
                return None


def run_program(name, arguments, cpu):
    """(what failed, or ""; all it said), within the limits of a fault."""
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    with open(PLACE / "output.txt", "w+", encoding="utf-8", errors="replace") as output:
        child = subprocess.Popen([BUILD / "bin" / name, *FIRST_FAILURE, *arguments], cwd=BUILD, env=environment,
                                 stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                 preexec_fn=lambda: set_limits(cpu))
        try:
            status = status_of(child)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        output.seek(0)
        said = output.read()
    return failure_of(status, said) if status != 0 else "", said


def measure():
    """The processor seconds of each program on the sound copy; exits where one fails."""
    seconds = []
    for name, arguments in PROGRAMS:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        failed, said = run_program(name, arguments, 600)
        if failed:
            sys.exit(f"{said}\nthe tests fail without any fault: {name}, {failed}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return seconds


NO_FAULT = ("does not compile", "same code")
UNSEEN = "UNSEEN"


def judge(fault, text, sound, limits):
    """Plants a fault, and takes it out again: what sees it."""
    path = TREE / fault.path
    path.write_text(planted(text, fault), encoding="utf-8")
    try:
        if build("rlx_objects"):
            return "does not compile"
        if code_of_library() == sound:
            return "same code"
        for (name, arguments), cpu in zip(PROGRAMS, limits):
            if build(name):
                return "does not compile"
            if failed := run_program(name, arguments, cpu)[0]:
                return f"{name} ({failed})"
        return UNSEEN
    finally:
        path.write_text(text, encoding="utf-8")


# ---- a run ----

class Journal:
    """What is known of this tree: one line of JSON for each fault, after one for the sound copy. A changed tree begins anew."""

    def __init__(self, digest):
        self.path, self.known = PLACE / "journal.txt", {}
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
        entries = [json.loads(line) for line in lines if line.endswith("]")]
        if entries and entries[0] == ["tree", digest]:
            self.known = {tuple(key): value for key, value in entries[1:]}
        else:
            self.path.write_text(json.dumps(["tree", digest]) + "\n", encoding="utf-8")

    def get(self, key, find):
        if key not in self.known:
            self.known[key] = find()
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def prepare():
    """The copy, built and sound: what is known of it, and the limits of each program."""
    begin = time.monotonic()
    journal = Journal(copy_tree())
    print("building the copy in build/mutate, and running its tests without any fault", flush=True)
    configure()
    wrong = build(*{name for name, _ in PROGRAMS})
    if wrong:
        sys.exit(f"{wrong}\nthe copy does not build without any fault")
    seconds = journal.get(("sound",), measure)
    print(f"they pass: {time.monotonic() - begin:.0f} s", flush=True)
    return journal, [CPU_SECONDS + int(CPU_FACTOR * second) for second in seconds]


def look(fault, text, sound, limits):
    begin = time.monotonic()
    return judge(fault, text, sound, limits), round(time.monotonic() - begin, 1)


def summary(texts, verdicts):
    counted = {fault: verdict for fault, verdict in verdicts.items() if verdict not in NO_FAULT}
    unseen = [fault for fault, verdict in counted.items() if verdict == UNSEEN]
    seen = len(counted) - len(unseen)
    by = collections.Counter(verdict.split()[0] for verdict in counted.values())
    yield f"seen {seen} of {len(counted)} that compile and change code ({100 * seen / max(len(counted), 1):.0f} %)"
    yield ", ".join(f"{name}: {number}" for name, number in by.most_common())
    yield ", ".join(f"{what}: {list(verdicts.values()).count(what)}" for what in NO_FAULT)
    for fault in unseen:
        text = texts[fault.path]
        yield f"\n{UNSEEN} {shown(text, fault)}\n{diff(text, fault)}"


def run(count, seed, folders):
    journal, limits = prepare()
    texts, sound = texts_of(folders), code_of_library()
    verdicts, counted = {}, 0
    try:
        for fault in draw(texts, seed):
            if counted == count:
                break
            text = texts[fault.path]
            verdict, seconds = journal.get(fault, lambda: look(fault, text, sound, limits))
            verdicts[fault] = verdict
            if verdict not in NO_FAULT:
                counted += 1
                print(f"{counted:4} {shown(text, fault)}: {verdict}, {seconds} s", flush=True)
    except KeyboardInterrupt:
        print("stopped: the same arguments go on from here")
    report = "\n".join(summary(texts, verdicts)) + "\n"
    (PLACE / "report.txt").write_text(report, encoding="utf-8")
    print(report, end="")


# ---- this file itself ----

# A text, and what becomes of it with each fault that may stand there; a site with two faults has two.
EXAMPLES = [
    ("x = a + b * -c;", ["x = a - b * -c;", "x = a + b / -c;"]),
    ("for (; i < n; i++) x -= y;", ["for (; i <= n; i++) x -= y;", "for (; i < n; i++) x += y;"]),
    ('f("a < b" + s, \'<\', R"(a < b)"); // a < b\n/* a < b */', []),
    ("#include <a - b>\n#define A a < b \\\n  && c < d\nx;", []),
    ("std::vector<std::array<T, 4>> f(T&& x, const U* y, V& z) { return *y << x >> z->w; }", []),
    ("template <class T = A<1>, int n = 2> auto&& f(T && x);", ["template <class T = A<1>, int n = 2> auto&& f(T || x);"]),
    ("static_assert(a < 4 && b); assert(a < b);", []),
    ("bool operator<(A) const; bool operator==(A) const;", []),
    ("x = f(0);", ["x = f(1);"]),
    ("x = 10u;", ["x = 11u;", "x = 9u;"]),
    ("x = 0x1F;", ["x = 0x20;", "x = 0x1e;"]),
    ("x = 1'000;", ["x = 1001;", "x = 999;"]),
    ("x = 1.5f;", ["x = 2.5f;", "x = 0.5f;"]),
    ("x = 1e-6;", ["x = 1.000001;"]),
    ("f(a.size()); a.size().b;", ["f(a.size() - 1); a.size().b;", "f(a.size() + 1); a.size().b;"]),
    ("x = std::max<T>(a, min(b));", ["x = std::min<T>(a, min(b));", "x = std::max<T>(a, max(b));"]),
    ("if (a) b; while (c(d)) e;", ["if (!(a)) b; while (c(d)) e;", "if (a) b; while (!(c(d))) e;"]),
    ("if (auto x = f(); x.y) z;", ["if (auto x = f(); !(x.y)) z;"]),
    ("if (auto* x = f()) z;", ["if (auto* x = f(); !x) z;"]),
    ("if (a == b) c;", ["if (a != b) c;"]),
    ("x = is<A, B> ? c : d(e) ? f : g;", ["x = !(is<A, B>) ? c : d(e) ? f : g;", "x = is<A, B> ? c : !(d(e)) ? f : g;"]),
    ("return a > b;", ["return a >= b;", "return !(a > b);"]),
    ("return !a;", ["return !(!a);"]),
    ("return static_cast<T>(a);", []),
    ("return true;", ["return false;"]),
]


def check_examples():
    for text, expected in EXAMPLES:
        found = [planted(text, fault) for place in sites("a.cpp", text) for fault in place]
        if sorted(found) != sorted(expected):
            yield f"{text}: expected {expected}, found {found}"


def check_draw():
    texts = {"b.cpp": "a + b < c;\nx = 7;", "a.cpp": "".join(f"a{i} + b;\n" for i in range(50))}
    drawn = draw(texts, 1)
    if drawn != draw(dict(sorted(texts.items())), 1) or drawn == draw(texts, 2) or len(set(drawn)) != 53:
        yield f"draws differ, or do not: {drawn}"
    fault = Fault("b.cpp", 6, 7, "<=")
    if shown(texts["b.cpp"], fault) != "b.cpp:1: b < c; -> b <= c;":
        yield shown(texts["b.cpp"], fault)
    if diff(texts["b.cpp"], fault).splitlines()[2:] != ["@@ -1,2 +1,2 @@", "-a + b < c;", "+a + b <= c;", " x = 7;"]:
        yield diff(texts["b.cpp"], fault)


def check_failures():
    for status, output, expected in [
        (1, "[ RUN      ] a.b\n[  FAILED  ] a.b/c (0 ms)\n", "a.b/c"),
        (-11, "", "signal 11"),
        (2, "", "exit 2"),
        (None, "", "time limit"),
        (-signal.SIGXCPU, "", "time limit"),
    ]:
        if failure_of(status, output) != expected:
            yield f"{status}: expected {expected}, found {failure_of(status, output)}"


def self_test():
    wrong = [*check_examples(), *check_draw(), *check_failures()]
    if wrong:
        sys.exit("self-test: " + "\n".join(wrong))


def main():
    arguments = sys.argv[1:]
    if arguments == ["self-test"]:
        return self_test()
    if len(arguments) < 2 or not all(word.isdigit() for word in arguments[:2]):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    for folder in arguments[2:]:
        if not (ROOT / folder).exists():
            print(f"there is no {folder}", file=sys.stderr)
            return 2
    PLACE.mkdir(parents=True, exist_ok=True)
    os.nice(10)  # it runs for long, and people work beside it
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with open(PLACE / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the copy holds one fault at a time
        try:
            run(int(arguments[0]), int(arguments[1]), arguments[2:] or FOLDERS)
        except KeyboardInterrupt:
            print("stopped before the first fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())
