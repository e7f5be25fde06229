# SPDX-License-Identifier: Apache-2.0
"""Where ONNX Runtime is wrong by the specification, or the specification leaves the result open. `onnx.reference` judged.

OPEN is what the makers of nodes stay away from. TABLE knows the same in a graph that is cut down, where it arises by chance.
"""
import re
from fractions import Fraction

import numpy as np

OPEN = {
    "reduce nothing": "ONNX Runtime's mean of nothing is 0 where the reference has NaN",
    "pool nothing": "windows over an axis of size 0: ONNX Runtime gives one of them, the reference none",
    "loop without trips": "stacked outputs of no trips: ONNX Runtime gives dims 0 where the body's are not known to it",
    "sequence of nothing": "an empty sequence whose elements only the run knows has no dims to join",
    "product of nothing": "a sum of no terms: MatMul of a vector and MatMulInteger leave their result unset in ONNX Runtime, Gemm forgets beta",
    "resize infinities": "samples of weight 0 that are not finite: open",
    "clip infinities": "without a bound, ONNX Runtime clips infinities to the largest number; the reference leaves them",
    "window larger than its input": "ONNX Runtime rounds its negative number of steps towards 0",
    "arg of nothing": "the place of the largest of no elements: open, also where that gives no results",
    "index into nothing": "an index that is out of range but picks no elements: librlx checks it, ONNX Runtime does not",
    "largest with NaN": "ONNX Runtime's ReduceMax and ReduceMin may drop NaN, its MaxPool, Hardmax, Normalizer, ArgMax and ArgMin do",
    "scattered NaN": "the largest or smallest of updates with NaN: ONNX Runtime and the reference drop NaN where it comes second",
    "crash": "ONNX Runtime crashes",
    "norm of one": "of one element: ONNX Runtime divides 0 by 0, or by nearly 0; the reference adds epsilon",
    "logs of integers": "ONNX Runtime rounds inside ReduceLogSum and ReduceLogSumExp of integers, and makes integers of NaN",
    "double LayerNormalization": "computed in floats by its stash_type, here in doubles",
    "NaN in a double LogSoftmax": "ONNX Runtime loses it",
    "reshape to 0": "a symbolic size that is 0 in the run stands for the input's there; librlx looks at numbers only",
    "windows of padding": "alone, by dilation in ceil mode: ONNX Runtime has 0 or the lowest number, the reference NaN",
    "masked NaN": "a NaN in keys or values that the mask leaves out: open by semantics.md R2 and A5",
    "cast out of range": "floats beyond the integer, and NaN: open",
    "transpose a convolution of nothing": "of an axis of size 0: ONNX Runtime has a stride less than librlx",
    "rank of contents": "Squeeze without axes of a size that is found to be 1 in the run: librlx refuses the run, as a rank never depends on it",
    "product of integers": "ONNX Runtime's ReduceProd of integers does not wrap",
    "double Shrink": "ONNX Runtime rounds Shrink of doubles to floats",
    "divide by zero": "of integers: open",
    "scale of zeros": "of zeros alone, ONNX Runtime's DynamicQuantizeLinear has the scale 1 where the formula gives 0",
    "quantize NaN": "or, where the scale comes from the input, infinities: open",
    "order of factors": "a product overflows or underflows in one order of its factors and not in another, as in a batch norm of huge numbers",
    "squares that cancel": "ONNX Runtime's LRN adds squares to a sum and takes them away again: small ones beside large ones are lost, infinite ones become NaN",
    "sum of an integer": "of a single i64: ONNX Runtime takes it through a double",
    "quotient of sizes": "as floats: librlx divides the sizes, so that n / n is 1 where n is 0, too",
    "size of the least integer": "ONNX Runtime's Normalizer takes it for negative",
    "squares of integers": "ONNX Runtime's ReduceSumSquare computes in doubles",
    "squares below the smallest": "of f32: denormal numbers may count as 0 by semantics.md N5, inside a node too",
    "sign of zero": "has no meaning by semantics.md N4, so neither has that of its reciprocal",
    "half of a double": "ONNX Runtime rounds it to a float first, so that a number beside a tie becomes one",
    "nearly equal": "two floats that rounding sets apart, or makes equal",
    "nearly zero": "a divisor, the base of a power, a factor of infinity, what Log reads, or what NonZero reads, that rounding makes 0, or sets apart from it",
    "edge of a pixel": "a coordinate that rounding moves across the edge between two pixels: librlx takes the simple fraction that a scale stands for",
    "concat of nothing": "ONNX Runtime does not compare the other sizes of what Concat joins where an input has no elements",
    "wrapped twice": "padding by more elements than an axis has: ONNX Runtime wraps once, and then reads what is not there",
    "batches of nothing": "ONNX Runtime does not compare the batch dims of GatherND where there are no indices",
}


def nodes_of(graph, *ops):
    """The nodes of these kinds, those in bodies too."""
    def walk(nodes):
        for node in nodes:
            if node.op in ops:
                yield node
            for body in node.bodies():
                yield from walk(body.nodes)

    return list(walk(graph.nodes))


def reads(inner, graph, ops, fits, operand=0):
    """Whether a node of these kinds reads an operand that fits; all operands: None."""
    for node in graph.nodes:
        names = node.ins if operand is None else node.ins[operand:operand + 1]
        if node.op in ops and any(name in inner and fits(inner[name]) for name in names):
            return True
    return False


def has_nan(x):
    return x.dtype.kind == "f" and np.isnan(x).any()


def not_finite(x):
    return x.dtype.kind == "f" and not np.isfinite(x).all()


def order_matters(x):
    """Of the factors of a product: those above 1 alone overflow, or those below 1 underflow."""
    if x.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        logs = np.log2(np.abs(x[np.isfinite(x) & (x != 0)].astype(np.float64)))
    limit = -np.log2(np.finfo(x.dtype).tiny)
    return max(logs[logs > 0].sum(), -logs[logs < 0].sum()) > limit


def cancels(x):
    """An element is lost in the roundings of the others."""
    finite = np.abs(x[np.isfinite(x)]) if x.dtype.kind == "f" else np.zeros(0)
    return finite.size > 0 and 0 < finite.max() and bool((finite <= 8 * np.finfo(x.dtype).eps * finite.max()).any())


def beside_a_tie(x):
    """Doubles that a rounding to f32 puts in the middle of two bf16 or f16."""
    if x.dtype != np.float64:
        return False
    near = x.astype(np.float32)
    low = near.view(np.uint32)
    return bool(((near != x) & ((low & 0xFFFF == 0x8000) | (low & 0x1FFF == 0x1000))).any())


def picks_nothing(graph, inner):
    """A node takes indices and has no elements to give, or is given no indices."""
    return any(name in inner and inner[name].size == 0 for node in nodes_of(graph, "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND",
                                                                          "Scatter", "OneHot", "TopK", "Compress") for name in node.ins + node.outs)


def pads_alone(graph, inner):
    """A largest element that is in no window: ONNX Runtime's stand-in for padding."""
    for node in nodes_of(graph, "MaxPool"):
        x, y = inner.get(node.ins[0]), inner.get(node.outs[0])
        if y is None or x is None or y.dtype.kind != "f":
            if node not in graph.nodes:
                return True  # in a body, where nobody looks
            continue
        lowest = np.finfo(y.dtype).min
        if (y == lowest).any() and not (x == lowest).any():
            return True
    return False


def leaves_integers(x):
    """Floats that no 64-bit integer is, or no smaller one: where the conversion is open."""
    return x.dtype.kind == "f" and bool((~np.isfinite(x) | (np.abs(x.astype(np.float64)) >= 128)).any())


def is_beyond_doubles(x):
    return x.dtype == np.int64 and x.size == 1 and any(int(np.float64(number)) != number for number in x.flat)


def squares_leave_integers(x):
    """Their sum is beyond the integers of the dtype, or beyond those that a double holds."""
    return x.dtype.kind in "iu" and (x.astype(np.float64) ** 2).sum() > min(2.0**52, np.iinfo(x.dtype).max)


def squares_below_the_smallest(x):
    if x.dtype != np.float32:
        return False
    squares = x.astype(np.float64) ** 2
    return bool(((squares > 0) & (squares < 2.0**-126)).any())


def within(graph, *ops):
    """Such nodes in bodies, whose values nobody sees."""
    return [node for node in nodes_of(graph, *ops) if node not in graph.nodes]


def squares_in_a_body(graph, message):
    """Integers beyond those that a double holds, or the largest of them."""
    numbers = [abs(int(number)) for number in re.findall(r"(?:for |: )(-?\d+)\b(?![.\d])", message)]
    return bool(within(graph, "ReduceSumSquare")) and max(numbers, default=0) >= 2**31 - 1


def largest_in_a_body(graph, inner):
    """Where NaN comes in from outside."""
    return bool(within(graph, "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Hardmax")) and any(map(has_nan, inner.values()))


def has_flat_channel(x):
    """All its elements are nearly one number."""
    flat = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1) if x.ndim > 1 and x.size else x.reshape(1, -1)
    return x.size > 0 and bool((np.ptp(flat, axis=1) <= 1e-4 * (np.abs(flat).max(axis=1) + 1e-30)).any())


def rounding_orders(graph, inner):
    """A comparison of floats that are not equal and at most 4 units in the last place apart."""
    for node in nodes_of(graph, "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
        pair = [inner.get(name) for name in node.ins]
        if any(x is None or x.dtype.kind != "f" for x in pair):
            continue
        with np.errstate(all="ignore"):
            apart = np.abs(pair[0] - pair[1])
            if ((apart > 0) & (apart <= 4 * np.spacing(np.maximum(np.abs(pair[0]), np.abs(pair[1]))))).any():
                return True
    return False


def loses_squares(graph, inner):
    for node in graph.nodes:
        x = inner.get(node.ins[0]) if node.op == "LRN" else None
        if x is not None and x.size:
            if not np.isfinite(x).all():
                return True
            lost = float(np.abs(x).max()) ** 2 * 2.0**-23 * node.attrs.get("alpha", 1e-4)
            if lost > 1e-5 * node.attrs.get("bias", 1.0):
                return True
    return False


def wraps_twice(graph, inner):
    for node in nodes_of(graph, "Pad"):
        x, y = inner.get(node.ins[0]), inner.get(node.outs[0])
        if node.attrs.get("mode") == "wrap" and (x is None or y is None or any(b > 2 * a for a, b in zip(x.shape, y.shape))):
            return True
    return False


def sum_cancels(x):
    """The elements are lost in the roundings of their sum."""
    if x.dtype.kind != "f" or not np.isfinite(x).all():
        return False
    wide = x.astype(np.float64)
    return bool(abs(wide.sum()) <= 8 * x.size * np.finfo(x.dtype).eps * np.abs(wide).sum())


def nearly_overflows(x):
    return x.dtype.kind == "f" and bool((np.abs(x[np.isfinite(x)].astype(np.float64)) > 1e-4 * np.finfo(x.dtype).max).any())


def infinite_products_of_nearly_zero(graph, inner):
    """0 times infinity is NaN, and the smallest number times infinity is infinity."""
    factors = [[inner[name] for name in node.ins[:2] if name in inner] for node in nodes_of(graph, "MatMul", "Gemm", "Mul")]
    return any(any(map(not_finite, pair)) and any(map(cancels, pair)) for pair in factors)


def powers_of_nearly_zero(graph, inner):
    """A power that has no bound near 0, or is no number below it, of a base that may be on either side."""
    for node in nodes_of(graph, "Pow"):
        base, exponent = (inner.get(name) for name in node.ins)
        if base is not None and exponent is not None and cancels(base):
            power = exponent.astype(np.float64)
            if ((power < 0) | (power != np.floor(power))).any():
                return True
    return False


# By coordinate transformation mode, where a pixel j of n/scale stands in the input.
COORDINATES = {
    "half_pixel": lambda j, scale: (j + Fraction(1, 2)) / scale - Fraction(1, 2),
    "pytorch_half_pixel": lambda j, scale: (j + Fraction(1, 2)) / scale - Fraction(1, 2),
    "asymmetric": lambda j, scale: j / scale,
    "tf_half_pixel_for_nn": lambda j, scale: (j + Fraction(1, 2)) / scale,
}


def samples_at_an_edge(graph, inner):
    """The nearest pixel, by a scale that is a rounded fraction, where the fraction itself gives an edge between two pixels. Where sizes
    are given ONNX Runtime rounds their fraction to such a scale."""
    for node in nodes_of(graph, "Resize"):
        place = COORDINATES.get(node.attrs.get("coordinate_transformation_mode", "half_pixel"))
        x, y = inner.get(node.ins[0]), inner.get(node.outs[0])
        scales = inner.get(node.ins[2]) if len(node.ins) == 3 else None
        if x is None or y is None or place is None or node.attrs.get("mode", "nearest") != "nearest":
            continue
        if scales is None:
            scales = np.array([size / n for size, n in zip(y.shape, x.shape) if n], np.float32)
        parts = 1 if node.attrs.get("nearest_mode", "round_prefer_floor") in ("floor", "ceil") else 2
        for scale, size in zip(scales.tolist(), y.shape[-len(scales):]):
            fraction = Fraction(scale).limit_denominator(1000)
            if fraction != Fraction(scale) and any((place(j, fraction) * parts).denominator == 1 for j in range(size)):
                return True
    return False


# Where librlx refuses a run that ONNX Runtime makes.
REDUCTIONS = ["Reduce" + name for name in "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()]
TABLE = [
    (lambda g, x, v: "is outside a" in v.message and "RLX_E_RANGE" in v.message and picks_nothing(g, x), OPEN["index into nothing"]),
    (lambda g, x, v: ": gather_nd: " in v.message and "does not hold" in v.message and picks_nothing(g, x), OPEN["batches of nothing"]),
    (lambda g, x, v: "concat: " in v.message and any(x[name].size == 0 for node in nodes_of(g, "Concat", "SequenceConstruct", "SequenceInsert")
                                                    for name in node.ins if name in x),
     OPEN["concat of nothing"]),
    (lambda g, x, v: re.search(r": squeeze: .*: 1 and 0$|: squeeze needs ", v.message) and any(len(node.ins) < 2 for node in nodes_of(g, "Squeeze")),
     OPEN["rank of contents"]),
]


# Of what the nodes read.
READING = [
    (lambda g, x, v: reads(x, g, ("QuantizeLinear",), has_nan), OPEN["quantize NaN"]),
    (lambda g, x, v: reads(x, g, ("DynamicQuantizeLinear",), not_finite), OPEN["quantize NaN"]),
    (lambda g, x, v: reads(x, g, ("DynamicQuantizeLinear",), lambda a: not a.any()), OPEN["scale of zeros"]),
    (lambda g, x, v: reads(x, g, ("ReduceProd",), order_matters), OPEN["order of factors"]),
    (lambda g, x, v: reads(x, g, ("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Hardmax", "Normalizer", "ArgMax", "ArgMin"), has_nan), OPEN["largest with NaN"]),
    (lambda g, x, v: reads(x, g, ("ScatterElements", "ScatterND"), has_nan, None), OPEN["scattered NaN"]),
    (lambda g, x, v: reads(x, g, ("ReduceSum", "ReduceL1"), is_beyond_doubles) or (within(g, "ReduceSum", "ReduceL1") and re.search(r"\d{16}", v.message)),
     OPEN["sum of an integer"]),
    (lambda g, x, v: "for nan" in v.message and any(nodes_of(g, "Shape", "Size")) and reads(x, g, ("Div",), lambda a: (a == 0).any(), None),
     OPEN["quotient of sizes"]),
    (lambda g, x, v: reads(x, g, ("Normalizer",), lambda a: a.dtype.kind == "i" and (a == np.iinfo(a.dtype).min).any()), OPEN["size of the least integer"]),
    (lambda g, x, v: reads(x, g, ("ReduceSumSquare",), squares_leave_integers),
     OPEN["squares of integers"]),
    (lambda g, x, v: reads(x, g, ("LpNormalization", "ReduceL2", "ReduceSumSquare"), squares_below_the_smallest), OPEN["squares below the smallest"]),
    (lambda g, x, v: squares_in_a_body(g, v.message), OPEN["squares of integers"]),
    (lambda g, x, v: largest_in_a_body(g, x), OPEN["largest with NaN"]),
    (lambda g, x, v: re.search(r"-inf for inf|: inf for -inf", v.message) and reads(x, g, ("Reciprocal", "Div", "Pow"), lambda a: (a == 0).any(), None), OPEN["sign of zero"]),
    (lambda g, x, v: re.search("inf|nan", v.message) and reads(x, g, ("Reciprocal", "Div", "Log"), cancels, None), OPEN["nearly zero"]),
    (lambda g, x, v: reads(x, g, ("NonZero",), cancels), OPEN["nearly zero"]),
    (lambda g, x, v: powers_of_nearly_zero(g, x), OPEN["nearly zero"]),
    (lambda g, x, v: "nan for" in v.message and infinite_products_of_nearly_zero(g, x), OPEN["nearly zero"]),
    (lambda g, x, v: reads(x, g, ("MatMulInteger",), lambda a: a.size == 0, None), OPEN["product of nothing"]),
    (lambda g, x, v: reads(x, g, ("ReduceLogSum",), sum_cancels), OPEN["nearly zero"]),
    (lambda g, x, v: reads(x, g, ("BatchNormalization",), nearly_overflows), OPEN["order of factors"]),
    (lambda g, x, v: wraps_twice(g, x), OPEN["wrapped twice"]),
    (lambda g, x, v: samples_at_an_edge(g, x), OPEN["edge of a pixel"]),
    (lambda g, x, v: reads(x, g, ("Cast", "CastLike"), beside_a_tie), OPEN["half of a double"]),
    (lambda g, x, v: loses_squares(g, x), OPEN["squares that cancel"]),
    (lambda g, x, v: pads_alone(g, x), OPEN["windows of padding"]),
    (lambda g, x, v: ("nan for 0.0" in v.message or nodes_of(g, "QuantizeLinear")) and any("dilations" in node.attrs for node in nodes_of(g, "AveragePool")),
     OPEN["windows of padding"]),
    (lambda g, x, v: reads(x, g, ("Cast", "CastLike"), leaves_integers), OPEN["cast out of range"]),
    (lambda g, x, v: reads(x, g, ("MeanVarianceNormalization",), has_flat_channel), OPEN["norm of one"]),
    (lambda g, x, v: reads(x, g, ("Resize",), not_finite), OPEN["resize infinities"]),
    (lambda g, x, v: reads(x, g, REDUCTIONS, lambda a: a.size == 0),
     "ONNX Runtime takes negative axes of empty inputs as they stand, and the mean of nothing is 0"),
    (lambda g, x, v: rounding_orders(g, x), OPEN["nearly equal"]),
]


# What has no one answer: the reference evaluator may have either. Everywhere else it has to differ from ONNX Runtime.
UNSETTLED = {OPEN[name] for name in ("sign of zero", "cast out of range", "resize infinities", "quantize NaN", "order of factors", "nearly equal", "nearly zero", "edge of a pixel", "squares below the smallest", "scattered NaN", "quotient of sizes",
                                       "windows of padding")}


def known(graph, verdict, inner, judge):
    """inner: of the binding at which the two part, every value by name. judge: whom the reference evaluator agrees with."""
    table = {"refused": TABLE, "differs": READING}.get(verdict.kind, [])
    return next((why for fits, why in table if (judge != "ONNX Runtime" or why in UNSETTLED) and fits(graph, inner, verdict)), None)
