# SPDX-License-Identifier: Apache-2.0
"""Many architectures with random weights, exported by both of torch's exporters at dynamic sizes.

    python architectures.py OUT [--only GLOB] [--again]     (packages: requirements.txt)

The tables of networks are nets_*.py. Writes into OUT, for each network:
    NET.traced.onnx, NET.scripted.onnx    the exporters that torch calls dynamo=True and dynamo=False
    NET.EXPORTER.0.tensors, .1., .2.      at three sizes: every graph input and torch's output (see tensors.py)
    NET.cases                             one line an exporter: what tests/onnx/architectures.cpp runs and compares
        NET.EXPORTER runs: SYMBOLS        its sizes are dynamic in these symbols; ONNX Runtime agrees with torch
        NET.EXPORTER peer: WHY            ONNX Runtime does not run it, or does not agree at some size
        NET.EXPORTER refused: WHY         the exporter does not take it
        NET.EXPORTER fails: WHY           torch itself fails
An exporter that refuses dynamic sizes, or writes a file that is right at the sizes of the export alone, is asked again
with fewer of them: those of the first symbol (the batch), and none.
"""

import argparse
import contextlib
import copy
import dataclasses
import fnmatch
import logging
import os
import pathlib
import re
import signal
import time
import warnings

import numpy as np
import onnxruntime
import torch

import nets_audio
import nets_functions
import nets_images
import nets_modules
import nets_recurrent
import nets_text
import nets_vision
from export import array_of, export, randomise, results_of, run_onnx
from tensors import write_tensors

NETS = {}
for table in (nets_text, nets_vision, nets_images, nets_audio, nets_recurrent, nets_modules, nets_functions):
    NETS |= table.NETS
EXPORTERS = ("traced", "scripted")
TOLERANCE = 1e-3  # of the largest value
SECONDS = 240  # an export may take


class TooSlow(Exception):
    pass


def too_slow(*_):
    raise TooSlow(f"more than {SECONDS} s")


def short(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = next((line for line in lines if "Error" in line or "rror:" in line), "")
    return re.sub(r"\x1b\[\d*m", "", f"{type(error).__name__}: {' '.join(lines)[:200]} {first[:200]}").strip()


def fewer(net, kept):
    """The same network with no other symbols than these; the sizes of others are those of the export."""

    def only(axes):
        return {i: s for i, s in axes.items() if s in kept}

    return dataclasses.replace(
        net,
        inputs={name: only(axes) for name, axes in net.inputs.items()},
        outputs={name: only(axes) for name, axes in net.outputs.items()},
        sizes=[{s: n if s in kept else net.example[s] for s, n in sizes.items()} for sizes in net.sizes],
    )


def levels(net):
    """Which symbols to ask for, from all of them to none."""
    symbols = list(dict.fromkeys(s for axes in net.inputs.values() for s in axes.values()))
    yield symbols
    if len(symbols) > 1:
        yield symbols[:1]
    yield []


def difference(got, want):
    """As a share of the largest value."""
    if got.shape != want.shape:
        return f"the shape is {list(got.shape)}, not {list(want.shape)}"
    if want.size == 0:
        return ""
    if want.dtype.kind != "f":
        return "" if np.array_equal(got, want) else "other integers"
    far = np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30)
    return "" if far < TOLERANCE else f"{far:.1e} of the largest value away"


def what_peer_says(path, net, cases):
    """Why ONNX Runtime does not give torch's results; "" where it does."""
    for sizes, tensors in zip(net.sizes, cases, strict=True):
        at = " ".join(f"{s}={n}" for s, n in sizes.items())
        try:
            got = run_onnx(path, tensors, net.outputs)
        except Exception as error:  # of any kind: it is a report
            return f"at {at}: {short(error)}"
        for name in net.outputs:
            if why := difference(got[name], tensors[name]):
                return f"at {at}: {name}: {why}"
    return ""


def run_torch(net):
    cases = []
    generator = torch.Generator().manual_seed(8)
    for sizes in net.sizes:
        values = net.make(generator, **sizes)
        results = results_of(net.module, tuple(v.clone() for v in values))
        cases.append({n: array_of(t) for n, t in zip([*net.inputs, *net.outputs], (*values, *results), strict=True)})
    return cases


def export_at(net, path, exporter, dim):
    example = net.make(torch.Generator().manual_seed(9), **net.example)
    signal.alarm(SECONDS)
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            export(dataclasses.replace(net, module=copy.deepcopy(net.module)), example, path, exporter == "traced", dim)
    finally:
        signal.alarm(0)


def try_export(net, path, exporter):
    """Why it cannot be had; "" where it can."""
    refused = ""
    for dim in (torch.export.Dim, str) if exporter == "traced" else (None,):
        try:
            export_at(net, path, exporter, dim)
            return ""
        except Exception as error:
            refused = refused or short(error)
    return refused


def build(out, name, net, exporter):
    """The line of the case list."""
    path = out / f"{name}.{exporter}.onnx"
    refused, peer = "", ""
    for symbols in levels(net):
        asked = fewer(net, symbols)
        try:
            cases = run_torch(asked)
        except Exception as error:
            return f"fails: {short(error)}"
        if why := try_export(asked, path, exporter):
            refused = refused or why
            continue
        complaint = what_peer_says(path, asked, cases)
        if complaint and symbols:  # right at the sizes of the export alone?
            peer = peer or complaint
            continue
        for i, tensors in enumerate(cases):
            write_tensors(out / f"{name}.{exporter}.{i}.tensors", tensors)
        note = f" ({peer or refused})" if peer or refused else ""
        return f"peer: {peer or complaint}" if complaint else f"runs: {','.join(symbols) or 'no symbols'}{note}"
    path.unlink(missing_ok=True)
    return f"refused: {refused}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default="*", help="a pattern of names, or some, separated by commas")
    parser.add_argument("--again", action="store_true", help="also those that are there")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(4)
    torch.backends.mha.set_fastpath_enabled(False)  # ops of it that no exporter takes
    signal.signal(signal.SIGALRM, too_slow)
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    patterns = arguments.only.split(",")
    for name, make in NETS.items():
        if not any(fnmatch.fnmatch(name, p) for p in patterns) or (
            (out / f"{name}.cases").exists() and not arguments.again
        ):
            continue
        torch.manual_seed(7)
        begin = time.time()
        with torch.no_grad():
            try:
                net = make()
                randomise(net.module, torch.Generator().manual_seed(7))
                net.module.eval()
                lines = [f"{name}.{e} {build(out, name, net, e)}" for e in EXPORTERS]
            except Exception as error:
                lines = [f"{name}.{e} fails: {short(error)}" for e in EXPORTERS]
        (out / f"{name}.cases").write_text("".join(line + "\n" for line in lines))
        print(*lines, f"  {time.time() - begin:.0f} s", sep="\n", flush=True)


if __name__ == "__main__":
    main()
