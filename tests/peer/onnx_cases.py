# SPDX-License-Identifier: Apache-2.0
"""Writes the node cases of PyPI's onnx as files, as Debian's libonnx-testdata lays them out, for tests/onnx/cases.cpp.

usage: onnx_cases.py FOLDER
"""
import json
import pathlib
import shutil
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader

KINDS = ("simple", "pytorch-converted", "pytorch-operator")


def proto_of(value, info):
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def write_values(folder, kind, values, infos):
    for i, (value, info) in enumerate(zip(values, infos)):
        (folder / f"{kind}_{i}.pb").write_bytes(proto_of(value, info).SerializeToString())


def write_case(case, folder):
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{i}"
        data.mkdir()
        write_values(data, "input", inputs, case.model.graph.input)
        write_values(data, "output", outputs, case.model.graph.output)


def main(folder):
    warnings.simplefilter("ignore")
    shutil.rmtree(folder, ignore_errors=True)
    cases = loader.load_model_tests(kind="node")
    for case in cases:
        write_case(case, folder / "node" / case.name)
    for kind in KINDS:
        shutil.copytree(pathlib.Path(loader.DATA_DIR) / kind, folder / kind)
    print(f"onnx {onnx.__version__}: {len(cases)} node cases in {folder}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
