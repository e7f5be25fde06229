# SPDX-License-Identifier: Apache-2.0
"""Each attribute of each node of ONNX's own cases, set to its default and to other values, on librlx beside onnxruntime, or beside
the reference evaluator of onnx where onnxruntime refuses. Shows an attribute that is read and then forgotten.

usage: onnx_attributes.py LIBRARY FOLDER [PART OF A CASE'S NAME ...]    FOLDER: what onnx_cases.py has written

A line is a node that librlx computes otherwise than its peers (differs), that it computes as before though all others refuse it
(unnoticed), or that only librlx refuses (refuses; a value such as -1 of a flag is no fault). Someone has to judge the lines: seeds
differ, and onnxruntime has faults of its own. A case runs in a process of its own, as some values crash onnxruntime.
"""
import collections
import copy
import os
import pathlib
import signal
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from random_onnx.graph import NAMES
from random_onnx.librlx import Error, Library, Model

SECONDS = 60  # for all values of one case
EMPTY = {"INT": 0, "FLOAT": 0.0, "STRING": "", "INTS": [], "FLOATS": []}


def plain(value):
    return value.decode() if isinstance(value, bytes) else value


def others(kind, now, words):
    """Values that an attribute does not have now."""
    if kind == "INT":
        found = [0, 1, 2, -1, 3, now + 1]
    elif kind == "FLOAT":
        found = [0.0, 0.3, 2.0, -1.5]
    elif kind == "STRING":
        found = [*sorted(words), "unknown"]
    elif kind == "INTS":
        found = [[x + 1 for x in now], now[::-1], now[:-1], [max(0, x - 1) for x in now]] if now else [[1], [0], [1, 1], [0, 1], [1] * 4, [-1]]
    else:
        found = [[2 * x + 0.5 for x in now]] if now else [[0.5]]
    return [value for i, value in enumerate(found) if value != now and value not in found[:i]]


def agree(got, want):
    """None: one of them gave nothing."""
    if isinstance(got, str) or isinstance(want, str):
        return None
    for a, b in zip(map(np.asarray, got), map(np.asarray, want)):
        if a.shape != b.shape:
            return False
        is_small = a.dtype.kind == "f" and a.dtype.itemsize < 4
        if a.dtype.kind not in "OUSc" and not np.allclose(a.astype(float), b.astype(float), 5e-2 if is_small else 1e-3, 1e-3, equal_nan=True):
            return False
    return True


class Runners:
    def __init__(self, library):
        self.library = Library(library)
        self.options = onnxruntime.SessionOptions()
        self.options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.options.log_severity_level, self.options.intra_op_num_threads = 4, 1

    def ours(self, model, feed, names):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(model.SerializeToString())
            file.flush()
            try:
                opened = Model(self.library, file.name)
                try:
                    return list(opened.run(feed, names).values())
                finally:
                    opened.close()
            except (Error, KeyError) as error:
                return str(error)

    def peers(self, model, feed, names):
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), self.options, providers=["CPUExecutionProvider"])
            return session.run(names, feed)
        except Exception as error:
            return str(error)

    def reference(self, model, feed, names):
        try:
            return [np.asarray(value) for value in ReferenceEvaluator(model).run(names, feed)]
        except Exception as error:
            return str(error)


def changed(model, at, name, value, kind):
    model = copy.deepcopy(model)
    node = model.graph.node[at]
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value, attr_type=getattr(onnx.AttributeProto, kind))])
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return model


def variants(model, words):
    """(what is changed, whether to the default, the changed model)"""
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    for at, node in enumerate(model.graph.node):
        try:
            schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        except onnx.defs.SchemaError:
            continue
        given = {attribute.name: plain(helper.get_attribute_value(attribute)) for attribute in node.attribute}
        for name, attribute in schema.attributes.items():
            kind = attribute.type.name
            if kind not in EMPTY:
                continue
            default = plain(helper.get_attribute_value(attribute.default_value)) if attribute.default_value.name else None
            now = given.get(name, EMPTY[kind] if default is None else default)
            now = list(now) if kind.endswith("S") else now
            values = others(kind, now, words[node.op_type, name])
            if default is not None and name not in given:
                values.insert(0, default)
            for value in values:
                text = f"{node.op_type}.{name} = {value!r}, not {now!r}"
                yield text, value == default, changed(model, at, name, value, kind)


def feed_of(path, model):
    """None: not of tensors that librlx has."""
    feed = {}
    for i, info in enumerate(model.graph.input):
        if info.type.WhichOneof("value") != "tensor_type":
            return None
        feed[info.name] = numpy_helper.to_array(onnx.load_tensor(path.parent / "test_data_set_0" / f"input_{i}.pb"))
        if feed[info.name].dtype not in NAMES:
            return None
    return feed


def check(path, runners, words):
    model = onnx.load(path)
    feed, names = feed_of(path, model), [output.name for output in model.graph.output]
    base = runners.ours(model, feed, names) if feed is not None else ""
    if isinstance(base, str):
        return
    for text, is_default, other in variants(model, words):
        got, want = runners.ours(other, feed, names), runners.peers(other, feed, names)
        same, peer = agree(got, want), "onnxruntime"
        if isinstance(got, str):
            if not isinstance(want, str):
                print(f"refuses {path.parent.name}: {text}: {got}", flush=True)
            continue
        if not same:
            judged = agree(got, runners.reference(other, feed, names))
            if judged is not None and same is None:
                same, peer = judged, "reference"
            same = True if judged else same
        if same is False:
            print(f"differs {path.parent.name}: {text}: from {peer}{', as before' if agree(got, base) else ''}", flush=True)
        if same is None and agree(got, base) and not is_default:
            print(f"unnoticed {path.parent.name}: {text}: {want[:100]!r}", flush=True)


def main(library, folder, *parts):
    warnings.simplefilter("ignore")
    paths = [path for path in sorted(pathlib.Path(folder).glob("node/*/model.onnx")) if "_expanded" not in path.parent.name]
    words = collections.defaultdict(set)
    for path in paths:
        for node in onnx.load(path).graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.STRING:
                    words[node.op_type, attribute.name].add(attribute.s.decode())
    for path in paths:
        if parts and not any(part in path.parent.name for part in parts):
            continue
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            try:
                check(path, Runners(library), words)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"crashes {path.parent.name}: {status}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
