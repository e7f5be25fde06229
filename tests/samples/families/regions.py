# SPDX-License-Identifier: Apache-2.0
"""elementwise_region: a body of elementwise ops in place of one. At most one op of a float body rounds, as every op of
a region does on its own.
"""

import numpy as np

from families.composites import sigmoid
from families.functions import PARTS
from golden import E8, PART, A, F, I, Tensor, complex_of, numbers, oracle, pairs, specials, tensor, wrap


def program(dtype, shapes, body, results):
    """The region on inputs a, b, ..; a body's formals are scalars: it says what happens at each position."""
    names = "abc"[: len(shapes)]
    lines = [f"  {n} = input {dtype}[{','.join(map(str, s))}]" for n, s in zip(names, shapes, strict=True)]
    outputs = [f"y{i}" for i in range(len(results))]
    lines += [f"  {', '.join(outputs)} = elementwise_region({', '.join(names)}) body=graph {{"]
    lines += [f"    {n} = input {dtype}[]" for n in names]
    lines += [f"    {line}" for line in body]
    lines += [f"    output {result}" for result in results]
    lines += ["  }", *(f"  output {y}" for y in outputs)]
    return ["graph () {", *lines, "}"]


def case(family, inputs, body, results, outputs):
    text = program(inputs[0].dtype, [t.shape for t in inputs], body, results)
    family.case("elementwise_region", inputs, outputs, program=text)


FLOAT_BODY = ["p = mul(a, b)", "n = neg(p)", "big = max(a, n)", "less = lt(big, b)"]
INT_BODY = ["s = add(a, b)", "x = bit_xor(s, a)", "same = eq(x, b)"]


def floats(family):
    def expected(dtype, a, b):
        big = oracle(dtype, np.maximum(a, -(a * b)))
        return [big, tensor("bool", big.a < b)]

    for dtype in F:
        a, b = pairs(dtype)
        case(family, [a, b], FLOAT_BODY, ["big", "less"], expected(dtype, a.a, b.a))
        x = specials(dtype)
        case(family, [x], ["s = sigmoid(a)"], ["s"], oracle(dtype, np.where(np.isnan(x.a), np.nan, sigmoid(x.a))))
        literal = [f"half = constant {dtype}[] {{0.5}}", "l = mul(a, half)", "w = where(c, l, a)"]
        case(family, [x], ["c = lt(a, a)", *literal], ["w"], oracle(dtype, x.a))
    for shapes in (((), ()), ((2, 3), (3,)), ((0, 2), ()), ((1, 5), (3, 1)), ((2, 1, 1), (1, 3, 1))):
        a, b = (numbers("f32", s, i) for i, s in enumerate(shapes))
        case(family, [a, b], FLOAT_BODY, ["big", "less"], expected("f32", a.a, b.a))


def others(family):
    for dtype in I:
        a, b = pairs(dtype)
        sums = [wrap(int(x) + int(y), dtype) for x, y in zip(a.a, b.a, strict=True)]
        mixed = tensor(dtype, np.array(sums, a.a.dtype) ^ a.a)
        case(family, [a, b], INT_BODY, ["x", "same"], [mixed, tensor("bool", mixed.a == b.a)])
    a, b = pairs("bool")
    body = ["n = bit_not(b)", "r = bit_and(a, n)"]
    case(family, [a, b], body, ["r", "n"], [tensor("bool", a.a & ~b.a), tensor("bool", ~b.a)])
    re, im = (p.ravel() for p in np.meshgrid(PARTS, PARTS))
    for dtype, part in PART.items():
        x = Tensor(dtype, complex_of(re, im))
        outputs = [Tensor(dtype, complex_of(-re, im)), tensor(part, -im)]
        case(family, [x], ["c = conj(a)", "n = neg(c)", "i = imag(c)"], ["n", "i"], outputs)
    for dtype in E8:
        a = specials(dtype)
        b = tensor(dtype, a.a[::-1])
        body = ["t = constant bool[] {true}", "w = where(t, b, a)"]
        case(family, [a, b], body, ["w", "a"], [b, a])


def refused(family):
    x = numbers("f32", (2,))
    for body, result in ((["s = reduce(a) fn=sum"], "s"), (["i = iota() shape=[2] axis=0 dtype=f32"], "i")):
        family.case("elementwise_region", [x], "RLX_E_OPTION", program=program("f32", [(2,)], body, [result]))
    negated = program("f32", [(2,)], ["n = neg(a)"], ["n"])
    wide = [line.replace("a = input f32[]", "a = input f64[]") for line in negated]
    family.case("elementwise_region", [x], "RLX_E_DTYPE", program=wide)


def add(family):
    assert set(F + I + E8 + ["bool", *PART]) == set(A)
    floats(family)
    others(family)
    refused(family)
