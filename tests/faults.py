# SPDX-License-Identifier: Apache-2.0
"""Where in a text of C++ a fault may stand, and which: what mutate.py plants."""
import collections
import difflib
import random
import re
import textwrap

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


def wrong():
    yield from check_examples()
    yield from check_draw()
