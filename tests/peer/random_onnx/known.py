# SPDX-License-Identifier: Apache-2.0
"""Where ONNX Runtime is wrong by the specification, or the specification leaves the result open. `onnx.reference` judged.

OPEN is what the makers of nodes stay away from. TABLE knows the same in a graph that is cut down, where it arises by chance.
"""
import numpy as np

OPEN = {
    "reduce nothing": "ONNX Runtime's mean of nothing is 0 where the reference has NaN",
    "pool nothing": "windows over an axis of size 0: ONNX Runtime gives one of them, the reference none",
    "loop without trips": "stacked outputs of no trips: ONNX Runtime gives dims 0 where the body's are not known to it",
    "product of nothing": "a sum of no terms: MatMul of a vector leaves its result unset in ONNX Runtime, Gemm forgets beta",
    "resize infinities": "samples of weight 0 that are not finite: open",
    "clip infinities": "without a bound, ONNX Runtime clips infinities to the largest number; the reference leaves them",
    "window larger than its input": "ONNX Runtime rounds its negative number of steps towards 0",
    "arg of nothing": "the place of the largest of no elements: open, also where that gives no results",
    "index into nothing": "an index that is out of range but picks no elements: librlx checks it, ONNX Runtime does not",
    "largest with NaN": "ONNX Runtime's ReduceMax and ReduceMin may drop NaN, its MaxPool and Hardmax do",
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
}


def only(*ops):
    """The graph that differs holds these node kinds and no others."""
    return lambda graph, feeds, verdict: verdict.kind == "differs" and {node.op for node in graph.nodes} <= set(ops)


def ops_of(node):
    """Of a node and of its bodies."""
    return {node.op}.union(*(ops_of(inner) for body in node.bodies() for inner in body.nodes))


def is_empty(feeds):
    return any(array.size == 0 for feed in feeds for array in feed.values())


def all_finite(feeds):
    return all(np.isfinite(array).all() for feed in feeds for array in feed.values() if array.dtype.kind == "f")


REDUCTIONS = ["Reduce" + name for name in "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()]
TABLE = [
    (lambda g, f, v: any("Hardmax" in ops_of(node) for node in g.nodes) and not all_finite(f), OPEN["largest with NaN"]),
    (lambda g, f, v: v.kind == "refused" and ": squeeze: " in v.message and v.message.endswith(": 1 and 0"), OPEN["rank of contents"]),
    (lambda g, f, v: only("MaxPool")(g, f, v) and "-inf for -3.4" in v.message, OPEN["windows of padding"]),
    (lambda g, f, v: only("Cast")(g, f, v) and not all_finite(f), OPEN["cast out of range"]),
    (lambda g, f, v: any(node.op == "MeanVarianceNormalization" for node in g.nodes) and " for nan" in v.message, OPEN["norm of one"]),
    (lambda g, f, v: any(node.op == "Resize" for node in g.nodes) and not all_finite(f), OPEN["resize infinities"]),
    (lambda g, f, v: only(*REDUCTIONS)(g, f, v) and is_empty(f),
     "ONNX Runtime takes negative axes of empty inputs as they stand, and the mean of nothing is 0"),
]


def known(graph, feeds, verdict):
    for fits, why in TABLE:
        if fits(graph, feeds, verdict):
            return why
    return None
