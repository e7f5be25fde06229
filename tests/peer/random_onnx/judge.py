# SPDX-License-Identifier: Apache-2.0
"""One graph on ONNX Runtime and on librlx, at each of its sizes: are the results the same?

Where they differ by more than rounding of one op, the graph itself says how much rounding matters: ONNX Runtime runs it again
with each float result a little off, and what that moves is no fault.
"""
import dataclasses
import os
import pathlib
import tempfile

import numpy as np
import onnxruntime

from . import librlx
from .graph import Body, DTYPES, FLOATS, NAMES, Node, described
from .known import nodes_of

EPS = {"f32": 1e-6, "f64": 2e-15, "f16": 2e-3, "bf16": 1.6e-2}
LEAST = {"f32": 1e-6, "f64": 1e-13, "f16": 1e-4, "bf16": 1e-3}
RELATIVE = {"f32": 1e-4, "f64": 1e-9, "f16": 1e-2, "bf16": 5e-2}
# Times this and back: what is no normal number becomes 0, as it does where a kernel's last bits are lost.
LOST = {"f64": 2.0**-53} | dict.fromkeys(["f32", "f16", "bf16"], 2.0**-24)
# These pass elements on, or round to integers: what they give has no rounding error of its own.
EXACT = set("""Abs ArgMax ArgMin BitCast Cast CastLike Ceil Clip Compress Concat Constant ConstantOfShape DepthToSpace Expand EyeLike
    Flatten Floor Gather GatherElements GatherND Identity If Loop Scan Max MaxPool Min Neg NonZero OneHot Pad Range ReduceMax ReduceMin
    Relu Reshape ReverseSequence Round Scatter ScatterElements ScatterND Shape Sign Size Slice SpaceToDepth Split Squeeze Tile TopK
    Transpose Trilu Unique Unsqueeze Where ConcatFromSequence SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceMap SplitToSequence
    ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer LabelEncoder OneHotEncoder""".split())
# Their last output is f32, which onnx does not say of all of them.
LEARNED = ("Scaler", "Normalizer", "LinearRegressor", "LinearClassifier", "SVMRegressor", "SVMClassifier", "TreeEnsembleRegressor",
           "TreeEnsembleClassifier")
# What these add up may be larger than the sum.
SUMS = set("""LSTM GRU RNN MatMul Gemm Einsum Conv ConvTranspose ReduceSum ReduceMean CumSum LayerNormalization InstanceNormalization
    GroupNormalization BatchNormalization Resize ReduceLogSum ReduceLogSumExp LogSoftmax Gelu""".split()) | set(LEARNED)
ROUNDS = {"DynamicQuantizeLinear"}  # and what they read may lie on the edge: the zero point of a range of equal sides is a tie
# These take a mean away: what rounding adds to their input may be all that is left of it.
CENTRES = {"LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization"}


def is_exact(node):
    """A scatter that adds or multiplies is a sum."""
    return node.op in EXACT and node.attrs.get("reduction") not in ("add", "mul")


@dataclasses.dataclass
class Verdict:
    kind: str  # ok, peer, refused, differs, crash, hang
    message: str = ""
    binding: int = -1
    output: str = ""
    runs: int = 0  # bindings at which both ran

    def bad(self):
        return self.kind not in ("ok", "peer")


def session(graph):
    return session_of(graph.model())


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def peer_run(run, graph, feed):
    names = list(graph.outputs)
    return dict(zip(names, run.run(names, {name: feed[name] for name in graph.inputs})))


def scales_of_resize(nodes):
    """The values from which the scales of a Resize are computed: an axis of another size is no noise."""
    found = set()
    for node in reversed(nodes):
        if node.op == "Resize":
            found.update(node.ins[1:3])
        if found.intersection(node.outs):
            found.update(node.ins)
    return found - {""}


def with_noise(nodes, dtypes, count):
    """Each float result times 1 + EPS * a number within -1 and 1 that its place gives; seeds 0 and 1 move all of them up or down.
    count: [of values, the seed, the opset]."""
    made = []

    def off(name, dtype, sums=False, shifts=False):
        count[0] += 1
        tag, half = f"noise{count[0]}", dtype in ("f16", "bf16")
        wide, work = tag + "wide" if half else name, []

        def add(op, ins, out, **attrs):
            work.append(Node(op, [part if isinstance(part, str) else number(part) for part in ins], [tag + out], attrs))
            return tag + out

        def number(value):
            spare = f"{tag}n{len(work)}"
            work.append(Node("Constant", [], [spare], {"value": np.asarray(value, DTYPES["f64" if dtype == "f64" else "f32"])}))
            return spare

        def whole(value):
            spare = f"{tag}n{len(work)}"
            work.append(Node("Constant", [], [spare], {"value": np.asarray(value, np.int64)}))
            return spare

        if half:
            add("Cast", [name], "wide", to=1)
        if count[1] < 2:
            wave = number(1.0 - 2 * count[1])
        elif count[2] >= 14:
            zero, one = whole(0), whole(1)
            places = add("Range", [zero, add("Size", [wide], "size"), one], "places")
            real = add("Cast", [add("Reshape", [places, add("Shape", [wide], "shape")], "placed",
                                                                                                allowzero=1)], "real", to=11 if dtype == "f64" else 1)
            wave = add("Sin", [add("Add", [add("Mul", [real, 12.9898 * (count[1] + 1.7)], "large"), float(count[0] + count[1])], "phase")],
                       "wave")
        else:
            wave = add("RandomUniformLike", [wide], "wave", low=-1.0, high=1.0, seed=float(count[0] + 1000 * count[1]))
        factor = add("Mul", [add("Add", [add("Mul", [wave, EPS[dtype]], "small"), 1.0], "near"), LOST[dtype]], "factor")
        product = add("Mul", [add("Mul", [wide, factor], "tiny"), 1.0 / LOST[dtype]], "scaled")
        if shifts:  # all elements by one number
            largest = add("ReduceMax", [add("Abs", [wide], "absolute")], "largest", keepdims=0)
            product = add("Add", [product, add("Mul", [largest, EPS[dtype] * (1 - 2 * (count[1] // 2 % 2))], "shift")], "shifted")
        # Another wave than that of the factor: -1 would stay where the two cancel.
        apart = add("Sub", [add("Mul", [wave, wave], "square"), 0.5], "apart")
        add("Add", [product, add("Mul", [apart, EPS[dtype] if sums else 0.0], "more")], "product" if half else "")
        if half:
            add("Cast", [tag + "product"], "", to=10 if dtype == "f16" else 16)
        return work, tag

    exact = scales_of_resize(nodes)
    for node in nodes:
        attrs = {name: dataclasses.replace(value, nodes=with_noise(value.nodes, dtypes, count)) if isinstance(value, Body) else value
                 for name, value in node.attrs.items()}
        node = dataclasses.replace(node, attrs=attrs, ins=list(node.ins), outs=list(node.outs))
        if node.op in ROUNDS or (node.op in CENTRES and dtypes.get(node.ins[0]) in FLOATS):
            extra, node.ins[0] = off(node.ins[0], dtypes.get(node.ins[0], "f32"), shifts=node.op in ROUNDS)
            made += extra
        made.append(node)
        if is_exact(node) or exact.intersection(node.outs):
            continue
        for i, out in enumerate(node.outs):
            dtype = dtypes.get(out)
            if dtype in FLOATS:
                node.outs[i] = out + "__exact"
                extra, tag = off(out + "__exact", dtype, node.op in SUMS or node.op in EXACT)
                extra[-1].outs[0] = out
                made += extra
    return made


def float_types(graph):
    """dtype of every value, in bodies too where that can be told: by type inference of onnx."""
    import onnx
    learned = {node.outs[-1]: "f32" for node in nodes_of(graph, *LEARNED, "FeatureVectorizer", "OneHotEncoder")}
    model = graph.model()
    model.graph.value_info.extend(described(name, dtype, None) for name, dtype in learned.items() if name not in graph.outputs)
    model = onnx.shape_inference.infer_shapes(model)
    found = {}

    def walk(proto):
        for info in list(proto.value_info) + list(proto.output):
            found[info.name] = info.type.tensor_type.elem_type
        for node in proto.node:
            for attr in node.attribute:
                if attr.HasField("g"):
                    walk(attr.g)

    walk(model.graph)
    words = {1: "f32", 11: "f64", 10: "f16", 16: "bf16"}
    return {name: words[code] for name, code in found.items() if code in words} | learned


def without_denormals(feed):
    """semantics.md N5."""
    return {name: np.where(np.abs(array) < 2.0**-126, array.dtype.type(0), array) if array.dtype == np.float32 else array
            for name, array in feed.items()}


FEW, MANY = range(14), range(14, 98)  # seeds of noise; what a rare rounding decides may need many


def noisy_results(graph, feed, seeds=FEW):
    try:
        results, types = [], float_types(graph) | {name: dtype for name, (dtype, _) in graph.inputs.items() if dtype in FLOATS}
        for seed in seeds:
            noisy = graph.replaced(nodes=with_noise(graph.nodes, types, [0, seed, graph.opset]))
            results.append(peer_run(session(noisy), noisy, without_denormals(feed) if seed % 4 > 1 else feed))
        return results
    except Exception as error:  # its kernels may be fewer than the graph needs
        return str(error)


def as_numbers(array):
    return array.astype(np.float64) if array.dtype.kind not in "iub" else array


def mismatch(ours, theirs, is_half):
    """Of arrays of one dtype and shape: where they differ, beyond the tolerance."""
    if theirs.dtype.kind in "iub":
        return ours != theirs, None
    name = NAMES[theirs.dtype]
    a, b = as_numbers(ours), as_numbers(theirs)
    finite = np.isfinite(b)
    scale = np.abs(b[finite]).max(initial=0.0)
    with np.errstate(all="ignore"):
        allowed = RELATIVE[name] * (np.abs(b) + 0.1 * scale) + LEAST[name]
        good = ((np.abs(a - b) <= allowed) & finite) | (np.isnan(a) & np.isnan(b)) | (a == b)
    if is_half:
        good |= ~finite  # what is computed in f32 overflows later
    return ~good, allowed


def moved_by_noise(bad, ours, wanted, theirs, noisy, output):
    """Whether every bad element is as near to what is wanted as ONNX Runtime's moves when each op is a little off."""
    if isinstance(noisy, str):
        return False
    moves = np.zeros(theirs.shape)
    shaky = np.zeros(theirs.shape, bool)
    b = as_numbers(theirs)
    for result in noisy:
        if result[output].shape != theirs.shape:
            return True
        n = as_numbers(result[output])
        with np.errstate(all="ignore"):
            if theirs.dtype.kind in "iub":
                shaky |= n != b
            else:
                shaky |= np.isnan(n) != np.isnan(b)
                shaky |= np.isinf(n) != np.isinf(b)
                moves = np.fmax(moves, np.abs(n - b))
    if theirs.dtype.kind in "iub":
        # an integer that rounding decides: one that moves somewhere may move anywhere
        return bool(shaky.any())
    with np.errstate(all="ignore"):
        wide = 20 * moves + 4 * np.nanmax(np.where(np.isfinite(moves), moves, 0), initial=0.0)
        good = shaky | (np.abs(as_numbers(ours) - as_numbers(wanted)) <= wide)
    return bool(good[bad].all())


def describe(bad, ours, theirs):
    places = np.argwhere(bad)[:4]
    pairs = ", ".join(f"{list(map(int, at))}: {ours[tuple(at)]} for {theirs[tuple(at)]}" for at in places)
    return f"{int(bad.sum())} of {bad.size} elements of {NAMES[theirs.dtype]}{list(theirs.shape)}: {pairs}"


def halves_in(graph):
    return any(dtype in ("f16", "bf16") for dtype, _ in graph.inputs.values()) or \
        any(node.op in ("Cast", "CastLike") and node.attrs.get("to") in (10, 16) for node in graph.nodes)


def narrows_doubles(graph):
    ops = [node for node in graph.nodes if node.op in ("Cast", "CastLike")]
    return any(node.attrs.get("to", 1) == 1 for node in ops) and \
        (any(dtype == "f64" for dtype, _ in graph.inputs.values()) or any(node.attrs.get("to") == 11 for node in ops))


class Judge:
    def __init__(self, library, stage=lambda name: None):
        self.library, self.stage = librlx.Library(library), stage
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="rlx-random-", dir=folder)) / "model.onnx"

    def close(self):
        self.path.unlink(missing_ok=True)
        self.path.parent.rmdir()

    def peer(self, graph, feeds):
        """What ONNX Runtime makes of it: at each binding its outputs, or the error as text."""
        self.stage("peer")
        try:
            run = session(graph)
        except Exception as error:
            return [str(error)] * len(feeds)
        results = []
        for feed in feeds:
            try:
                results.append(peer_run(run, graph, feed))
            except Exception as error:
                results.append(str(error))
        return results

    def check(self, graph, feeds, device=None):
        expected = self.peer(graph, feeds)
        ran = [i for i, result in enumerate(expected) if not isinstance(result, str)]
        if not ran:
            return Verdict("peer", expected[0])
        self.stage("ours")
        self.path.write_bytes(graph.model().SerializeToString())
        try:
            model = librlx.Model(self.library, self.path)
        except librlx.Error as error:
            return Verdict("refused", str(error))
        try:
            for i in ran:
                try:
                    got = model.run({name: feeds[i][name] for name in graph.inputs}, list(graph.outputs), device)
                except librlx.Error as error:
                    return Verdict("refused", str(error), i)
                for name in graph.outputs:
                    why = self.compare(graph, feeds[i], name, got[name], expected[i][name])
                    if why and not (device and agrees_in_doubles(graph, feeds[i], name, got[name])):
                        return Verdict("differs", why, i, name)
        finally:
            model.close()
        return Verdict("ok", runs=len(ran))

    def arbiter(self, graph, feed, output, device=None):
        """Whom onnx.reference agrees with: the judge of last resort."""
        self.path.write_bytes(graph.model().SerializeToString())
        model = librlx.Model(self.library, self.path)
        try:
            ours = model.run({name: feed[name] for name in graph.inputs}, [output], device)[output]
        except librlx.Error as error:
            return str(error)
        finally:
            model.close()
        theirs = np.asarray(self.peer(graph, [feed])[0][output])
        result = reference_result(graph, feed, output)
        if isinstance(result, str):
            return result
        noisy = noisy_results(graph, feed)

        def agrees(array):
            if not result.shape == array.shape == theirs.shape or result.dtype != array.dtype:
                return False
            bad, _ = mismatch(array, result, False)
            return not bad.any() or moved_by_noise(bad, array, result, theirs, noisy, output)

        return {(True, True): "both", (True, False): "librlx", (False, True): "ONNX Runtime", (False, False): "neither"}[
            agrees(ours), agrees(theirs)]

    def inner(self, graph, feed):
        """Every value of the graph at these inputs, by ONNX Runtime; bodies are not looked into."""
        self.stage("peer")
        outs = {out: "f32" for node in graph.nodes for out in node.outs if out}
        try:
            import onnx
            model = graph.model()
            del model.graph.output[:]
            model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(out) for out in outs)
            found = dict(zip(outs, session_of(model).run(list(outs), {name: feed[name] for name in graph.inputs})))
        except Exception:  # it may refuse to show one of them
            found = {}
        return dict(graph.inits) | {name: np.asarray(array) for name, array in (feed | found).items() if not isinstance(array, list)}

    def compare(self, graph, feed, name, ours, theirs):
        theirs = np.asarray(theirs)
        if ours.dtype != theirs.dtype:
            return f"dtype {NAMES[ours.dtype]} for {NAMES[theirs.dtype]}"
        same_shape = ours.shape == theirs.shape
        if same_shape:
            bad, _ = mismatch(ours, theirs, halves_in(graph))
            if not bad.any():
                return None
        only = graph.replaced(outputs={name: graph.outputs[name]}).pruned()
        for seeds in (FEW, MANY):
            self.stage("peer")
            noisy = noisy_results(only, feed, seeds)
            self.stage("ours")
            moves = not isinstance(noisy, str) and any(result[name].shape != theirs.shape for result in noisy)
            if moves or (same_shape and moved_by_noise(bad, ours, theirs, theirs, noisy, name)):
                return None
        return describe(bad, ours, theirs) if same_shape else f"shape {list(ours.shape)} for {list(theirs.shape)}"


TYPE_ATTRS = ("to", "dtype")


def in_doubles(nodes):
    def wide(name, value):
        if isinstance(value, Body):
            types = {side: [(it, "f64" if dtype == "f32" else dtype, rank) for it, dtype, rank in getattr(value, side)]
                     for side in ("inputs", "outputs")}
            return dataclasses.replace(value, nodes=in_doubles(value.nodes), inits=all_wide(value.inits), **types)
        if isinstance(value, np.ndarray):
            return all_wide({name: value})[name]
        return 11 if name in TYPE_ATTRS and value == 1 else value

    return [dataclasses.replace(node, attrs={name: wide(name, value) for name, value in node.attrs.items()}) for node in nodes]


def all_wide(arrays):
    return {name: array.astype(np.float64) if array.dtype == np.float32 else array for name, array in arrays.items()}


def agrees_in_doubles(graph, feed, output, ours):
    """The device `reference` keeps every f32 in f64: whether onnx.reference gives the same when all floats are doubles."""
    types = {name: ("f64" if dtype == "f32" else dtype, dims) for name, (dtype, dims) in graph.inputs.items()}
    wide = graph.replaced(nodes=in_doubles(graph.nodes), inits=all_wide(graph.inits), inputs=types)
    with np.errstate(all="ignore"):
        result = reference_result(wide, all_wide(feed), output)
        if isinstance(result, str) or result.shape != ours.shape:
            return False
        result = result.astype(ours.dtype)
    return not mismatch(ours, result, False)[0].any()


def reference_result(graph, feed, output):
    from onnx.reference import ReferenceEvaluator
    try:
        return np.asarray(ReferenceEvaluator(graph.model()).run([output], {name: feed[name] for name in graph.inputs})[0])
    except Exception as error:
        return f"the reference evaluator fails: {str(error)[:200]}"
