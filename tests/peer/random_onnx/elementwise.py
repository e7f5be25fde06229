# SPDX-License-Identifier: Apache-2.0
"""Nodes that work element by element, and reductions, searches and sorts along axes."""
import numpy as np

from .graph import DTYPES, FEW_BITS, FLOATS, ONNX_TYPES
from .maker import INTS, Skip

SAFE = {"Abs": None, "Neg": None, "Relu": None, "Floor": None, "Ceil": None, "Round": None, "Sign": 1, "Erf": 1, "Sin": 1, "Cos": 1,
        "Tanh": 1, "Atan": 2, "Asinh": 8, "Sigmoid": 1, "Softplus": None, "Softsign": 1, "HardSigmoid": 1, "HardSwish": None, "Elu": None,
        "Celu": None, "Selu": None, "LeakyRelu": None, "Gelu": None, "Mish": None, "ThresholdedRelu": None, "Identity": None,
        "Shrink": None, "Swish": None}
ROUGH = ["Exp", "Log", "Sqrt", "Reciprocal", "Tan", "Asin", "Acos", "Sinh", "Cosh", "Acosh", "Atanh"]


def unary(m):
    op = m.one(SAFE)
    m.need(m.takes(op))
    x = m.pick(m.takes(op) if op != "Shrink" else {"f32"})  # known.OPEN: double Shrink
    attrs = {}
    if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Selu", "HardSigmoid") and m.chance(0.5):
        attrs["alpha"] = float(m.one([0.1, 0.5, 1.0, 1.5]))
    if op in ("Selu",) and m.chance(0.5):
        attrs["gamma"] = 1.25
    if op == "HardSigmoid" and m.chance(0.5):
        attrs["beta"] = 0.25
    if op == "Gelu" and m.chance(0.5):
        attrs["approximate"] = m.one(["none", "tanh"])
    if op == "Shrink":
        attrs = {"lambd": 0.5, "bias": m.one([0.0, 0.25])}
    mag = SAFE[op]
    options = {"mag": mag if mag is not None and op not in ("Celu",) else x.mag + 1}
    if x.dtype not in FLOATS:
        options = {}
    m.node(op, [x], [(x.dtype, x.dims, options)], **attrs)


def rough(m):
    op = m.one(ROUGH)
    x = m.pick(m.takes(op), where=lambda v: v.mag <= 1e3)
    if op in ("Exp", "Sinh", "Cosh") and x.mag > 20:
        x = m.calm(x, 20)
    wild = x.wild or op not in ("Exp", "Sinh", "Cosh")
    if op in ("Log", "Sqrt", "Reciprocal") and m.chance(0.7):  # as it is meant
        x = m.node("Abs", [x], [(x.dtype, x.dims)])
        if m.chance(0.7):
            x = m.node("Add", [x, m.const(np.asarray(0.5), x.dtype)], [(x.dtype, x.dims)])
            wild = x.wild
    mag = {"Exp": np.exp(min(x.mag, 20)), "Sinh": np.exp(min(x.mag, 20)), "Cosh": np.exp(min(x.mag, 20))}.get(op, 1e3)
    m.node(op, [x], [(x.dtype, x.dims, {"wild": wild, "mag": float(mag)})])


def binary(m):
    op = m.one(["Add", "Sub", "Mul", "Div", "Add", "Mul", "Sub"])
    x = m.pick(m.takes(op))
    y = m.broadcast_of(x)
    dims = m.broadcast(x, y)
    options = {}
    if op == "Div":
        if x.is_float:
            options = {"wild": True, "mag": 1e3}
            if m.chance(0.7):
                y = m.node("Add", [m.node("Abs", [y], [(y.dtype, y.dims)]), m.const(np.asarray(0.5), y.dtype)], [(y.dtype, y.dims)])
                options = {"mag": 2 * x.mag, "wild": x.wild or y.wild}
        else:
            y = m.const(np.asarray(m.one([1, 2, 3, 7])), x.dtype)  # the rest is undefined
            dims = x.dims
    elif x.is_float:
        if op == "Mul" and x.mag * y.mag > 1e6:
            x = m.calm(x)
        options = {"mag": x.mag * y.mag if op == "Mul" else x.mag + y.mag}
        if m.chance(0.5) and op == "Sub":
            x, y = y, x
    m.node(op, [x, y], [(x.dtype, dims, options)])


def variadic(m):
    op = m.one(["Min", "Max", "Sum", "Mean", "Min", "Max"])
    x = m.pick(m.takes(op))
    ins = [x] + [m.broadcast_of(x) for _ in range(m.int(0, 2))]
    if m.opset < 8:
        ins = [x] + [m.like(x) for _ in ins[1:]]
    m.node(op, ins, [(x.dtype, m.broadcast(*ins), {"mag": sum(v.mag for v in ins)} if x.is_float else {})])


def power(m):
    x = m.pick(m.takes("Pow"), where=lambda v: v.mag <= 100)
    if x.is_float:
        e = m.const(np.asarray(m.one([2, 3, 1, 0, 0.5, -1.0])), x.dtype if m.opset < 12 or m.chance(0.7) else m.one(["f32", "i64", "i32"]))
        m.node("Pow", [x, e], [(x.dtype, x.dims, {"wild": True, "mag": x.mag ** 3})])
    elif m.opset >= 12 and x.dtype in ("i32", "i64") and m.chance(0.3):
        x = m.node("Abs", [x], [(x.dtype, x.dims)])  # a root of what is negative is no integer
        m.node("Pow", [x, m.const(np.asarray(0.5), "f32")], [(x.dtype, x.dims)])
    else:
        e = m.const(np.asarray(m.one([0, 1, 2])), x.dtype)
        m.node("Pow", [x, e], [(x.dtype, x.dims)])


def modulo(m):
    x = m.pick(m.takes("Mod"))
    y = m.const(np.asarray(m.one([1, 2, 3, 5]) * (m.one([1, -1]) if x.dtype[0] in "if" else 1)), x.dtype)
    m.node("Mod", [x, y], [(x.dtype, x.dims, {"mag": 5.0, "wild": x.wild} if x.is_float else {})], fmod=1 if x.is_float or m.chance(0.3) else None)


def compare(m):
    op = m.one(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
    x = m.pick(m.takes(op))
    y = m.broadcast_of(x)
    m.node(op, [x, y], [("bool", m.broadcast(x, y))])


def logic(m):
    op = m.one(["And", "Or", "Xor", "Not"])
    x = m.pick({"bool"})
    if op == "Not":
        m.node(op, [x], [("bool", x.dims)])
    else:
        y = m.broadcast_of(x)
        m.node(op, [x, y], [("bool", m.broadcast(x, y))])


def bits(m):
    op = m.one(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"])
    x = m.pick(m.takes(op))
    if op == "BitwiseNot":
        m.node(op, [x], [(x.dtype, x.dims)])
    elif op == "BitShift":
        y = m.const(np.asarray(m.int(0, 7)), x.dtype)
        m.node(op, [x, y], [(x.dtype, x.dims)], direction=m.one(["LEFT", "RIGHT"]))
    else:
        y = m.broadcast_of(x)
        m.node(op, [x, y], [(x.dtype, m.broadcast(x, y))])


def tests_of_floats(m):
    op = m.one(["IsNaN", "IsInf"])
    x = m.pick(m.takes(op) & set(FLOATS))
    attrs = {}
    if op == "IsInf" and m.chance(0.3):
        attrs = {"detect_negative": m.int(0, 1), "detect_positive": m.int(0, 1)}
    m.node(op, [x], [("bool", x.dims)], **attrs)


def where(m):
    x = m.pick(m.takes("Where", 1))
    y, c = m.broadcast_of(x), m.broadcast_of(x, "bool")
    if m.chance(0.4):
        y, x = x, y
    m.node("Where", [c, x, y], [(x.dtype, m.broadcast(c, x, y), {"mag": max(x.mag, y.mag), "wild": x.wild or y.wild} if x.is_float else {})])


def to_int(m, x, dtype):
    """x as integers: within their range, and no NaN."""
    if x.is_float:
        if x.wild:
            raise Skip
        low = 0.0 if dtype[0] == "u" else -100.0
        clip = {"min": low, "max": 100.0} if m.opset < 11 else {}
        ins = [x] if clip else [x, m.const(np.asarray(low), x.dtype), m.const(np.asarray(100.0), x.dtype)]
        m.need(x.dtype in m.takes("Clip"))
        x = m.node("Clip", ins, [(x.dtype, x.dims, {"mag": 100.0})], **clip)
    return m.node("Cast", [x], [(dtype, x.dims)], to=ONNX_TYPES[dtype])


def cast(m):
    x = m.pick(set(DTYPES) - {"bf16", *FEW_BITS})
    to = m.one(["f32", "f32", "f64", "f16", "i8", "i32", "i64", "u8", "bool", "bf16", "u16", "u32", "u64", "i16"])
    if to in FLOATS:
        m.need(to != "bf16" or m.opset >= 13)
        if x.is_float and x.mag > 1e4 and to == "f16":
            raise Skip
        y = m.node("Cast", [x], [(to, x.dims, {"mag": max(x.mag, 256.0), "wild": x.wild})], to=ONNX_TYPES[to], seen=to != "bf16")
        if to == "bf16":
            m.node("Cast", [y], [("f32", x.dims, {"mag": y.mag, "wild": y.wild})], to=1)
    elif to == "bool":
        m.node("Cast", [x], [("bool", x.dims)], to=9)
    else:
        to_int(m, x, to)


def cast_like(m):
    m.need(m.opset >= 15)
    x, y = m.pick({"f32", "f64", "i32", "i64", "bool", "u8"}), m.pick({"f32", "f64", "i64", "bool", "i32"})
    m.need(y.dtype in FLOATS + ("bool",) or not x.is_float)
    m.node("CastLike", [x, y], [(y.dtype, x.dims, {"mag": max(x.mag, 256.0), "wild": x.wild} if y.is_float else {})])


def clip(m):
    x = m.pick(m.takes("Clip"))
    low, high = m.one([0, 1, 2]), m.one([3, 5, 6])
    if m.opset < 11:
        m.need(x.is_float and not x.wild)
        m.node("Clip", [x], [(x.dtype, x.dims, {"mag": x.mag})], min=float(low), max=float(high))
        return
    both = x.wild  # known.OPEN: clip infinities
    lo = m.const(np.asarray(low), x.dtype) if both or m.chance(0.7) else None
    hi = m.const(np.asarray(high), x.dtype) if both or m.chance(0.7) else None
    m.node("Clip", [x, lo, hi], [(x.dtype, x.dims, {"wild": x.wild} if x.is_float else {})])


def prelu(m):
    x = m.pick(m.takes("PRelu"), rank=(1, 5))
    slope = m.random_const(x.dtype, m.one([(1,), (1,) * x.rank, ()] if m.opset >= 7 else [(1,)]))
    m.node("PRelu", [x, slope], [(x.dtype, x.dims)])


def bit_cast(m):
    m.need(m.opset >= 26)


REDUCE = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum",
          "ReduceLogSumExp"]


def reduce(m):
    op = m.one(REDUCE + REDUCE[:4])
    x = m.pick(m.takes(op), where=lambda v: v.mag <= 1e4)
    count = m.int(0, x.rank)
    axes = sorted(m.rng.permutation(x.rank)[:count].tolist())
    keep = m.int(0, 1) if m.chance(0.7) else None
    if op in ("ReduceProd", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare", "ReduceL2") and x.is_float:
        x = m.calm(x, 20)
    since = 13 if op == "ReduceSum" else 18
    attrs, ins = {"keepdims": keep}, [x]
    empty = any(0 in dim for dim in x.dims)  # known.TABLE: negative axes of empty inputs
    spelled = m.axes(axes, x.rank) if m.opset >= 11 and not empty else axes
    noop = False
    if m.opset >= since:
        if count:
            ins.append(m.const(np.array(spelled, np.int64)) if m.chance(0.95) or m.local is not None
                       else m.run_input(np.array([spelled] * len(m.sizes), np.int64)))
        elif m.chance(0.3):
            noop = True
            attrs["noop_with_empty_axes"] = 1
    elif count:
        attrs["axes"] = spelled
    reduced = axes if count else [] if noop else list(range(x.rank))
    m.need(not noop or op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"))  # of the others ORT keeps x as it is
    dims = [m.lit(1) if i in reduced else dim for i, dim in enumerate(x.dims) if i not in reduced or keep != 0]
    m.need(op not in ("ReduceMax", "ReduceMin", "ReduceLogSumExp") or not x.wild)  # known.OPEN: largest with NaN
    m.need(op not in ("ReduceProd", "ReduceLogSum", "ReduceLogSumExp") or x.is_float)  # known.OPEN: product, logs of integers
    for i in reduced if op == "ReduceMean" else []:
        m.avoid("reduce nothing", x.dims[i])
    wild = x.wild or op in ("ReduceLogSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceLogSumExp")
    if x.dtype not in FLOATS:
        for i in reduced:
            if op in ("ReduceMax", "ReduceMin", "ReduceMean"):
                m.at_least(x.dims[i], 1)
    m.node(op, ins, [(x.dtype, dims, {"wild": wild, "mag": min(x.mag * 50, 1e6)} if x.is_float else {})], **attrs)


def arg(m):
    op = m.one(["ArgMax", "ArgMin"])
    x = m.pick(m.takes(op), rank=(1, 5), where=lambda v: not v.wild)
    axis, keep = m.int(0, x.rank - 1), m.int(0, 1)
    m.avoid("arg of nothing", x.dims[axis])
    dims = [m.lit(1) if i == axis else dim for i, dim in enumerate(x.dims) if i != axis or keep]
    empty = any(0 in dim for dim in x.dims)  # known.TABLE: negative axes of empty inputs
    m.node(op, [x], [("i64", dims)], axis=m.axes([axis], x.rank)[0] if m.opset >= 11 and not empty else axis, keepdims=keep,
           select_last_index=m.int(0, 1) if m.opset >= 12 else None)


def cumulative(m):
    op = "CumSum" if m.opset < 26 or m.chance(0.7) else "CumProd"
    x = m.pick(m.takes(op), rank=(1, 5), where=lambda v: v.mag <= 1e4)
    axis = m.const(np.array(m.axes([m.int(0, x.rank - 1)], x.rank)[0], m.one([np.int32, np.int64])))
    m.node(op, [x, axis], [(x.dtype, x.dims, {"mag": x.mag * 30, "wild": x.wild} if x.is_float else {})],
           exclusive=m.int(0, 1), reverse=m.int(0, 1))


def top_k(m):
    x = m.pick(m.takes("TopK"), rank=(1, 5), where=lambda v: not v.wild)
    axis = m.int(0, x.rank - 1)
    dim = x.dims[axis]
    attrs = {"axis": axis}
    if m.opset < 10 or m.chance(0.5):
        k = m.int(0 if m.opset >= 10 else 1, 3)
        m.at_least(dim, k)
        k = m.lit(k)
    else:
        k = dim
    if m.opset < 10:
        m.need(m.is_lit(k))
        attrs["k"], ins = k[0], [x]
    else:
        ins = [x, m.list_of([k])]
    if m.opset >= 11:
        attrs |= {"largest": m.int(0, 1), "axis": m.axes([axis], x.rank)[0]}
    dims = x.dims[:axis] + [k] + x.dims[axis + 1:]
    m.node("TopK", ins, [(x.dtype, dims), ("i64", dims)], **attrs)


def softmax(m):
    op = m.one(["Softmax", "LogSoftmax", "Hardmax", "Softmax"])
    x = m.pick(m.takes(op), rank=(1, 5))
    axis = m.int(0, x.rank - 1) if m.chance(0.8) else None
    if axis is not None and m.opset >= 11:
        axis = m.axes([axis], x.rank)[0]
    m.need(not x.wild or (op != "Hardmax" and x.dtype == "f32"))  # known.OPEN: NaN in a double LogSoftmax
    m.need(axis is not None or x.rank > 1 or m.opset >= 13)
    m.node(op, [x], [(x.dtype, x.dims, {"mag": 1.0 if op != "LogSoftmax" else x.mag * 2 + 10, "wild": x.wild})], axis=axis)


def random_like(m):
    raise Skip


FAMILY = [(10, unary), (4, rough), (14, binary), (4, variadic), (2, power), (2, modulo), (4, compare), (3, logic), (2, bits),
          (1, tests_of_floats), (5, where), (5, cast), (1, cast_like), (2, clip), (1, prelu), (7, reduce), (2, arg), (2, cumulative),
          (2, top_k), (3, softmax)]
