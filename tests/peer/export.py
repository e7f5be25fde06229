# SPDX-License-Identifier: Apache-2.0
"""Three small networks with random weights, exported by both of torch's exporters at dynamic sizes, in f32 and in halves.

    python export.py OUT            (packages: requirements.txt)

Writes into OUT, for an encoder, a decoder with a KV cache and a vision transformer:
    NET.traced.onnx, NET.scripted.onnx    the exporters that torch calls dynamo=True and dynamo=False
    NET.0.tensors, .1., .2.               at three sizes: every graph input and torch's output (see tensors.py)
    NET.*.f16.onnx, NET.f16.*.tensors     the same of module.half(); the output is what f32 makes of its weights
    NET.*.bf16.onnx, NET.bf16.*.tensors   the same of module.to(torch.bfloat16)
    cases.txt                             one line a case: MODEL.onnx TENSORS
Every case is run by torch itself in its dtype and, but for bf16, by ONNX Runtime, so that a wrong export is not taken
for a fault of ours.
"""

import copy
import dataclasses
import logging
import pathlib
import sys
import warnings
from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnxruntime
import torch
import transformers
from torch import nn

from tensors import write_tensors

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, INNER = 100, 64, 2, 4, 2, 128
HEAD = HIDDEN // HEADS
# How far results may be from those in f32, of the largest value: for halves 8 times what one rounding changes, as some
# tens of them stand between input and result and do not all add up.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 8 * 2**-11, torch.bfloat16: 8 * 2**-8}
SUFFIXES = {torch.float32: "", torch.float16: ".f16", torch.bfloat16: ".bf16"}


@dataclasses.dataclass
class Net:
    module: nn.Module
    inputs: dict[str, dict[int, str]]  # graph input -> {axis: symbol}
    outputs: dict[str, dict[int, str]]
    make: Callable[..., tuple]  # (generator, **sizes) -> one tensor for each input
    sizes: list[dict[str, int]]
    example: dict[str, int]  # sizes at the export; none is 0 or 1, which exporters take for constants
    rest: int | None = None  # the inputs from here on are one argument, *past


def padded(generator, batch, length):
    """A mask of ones whose rows end in a few zeros; the first row is full."""
    keep = length - torch.randint(0, max(1, length // 2), (batch, 1), generator=generator)
    keep[0] = length
    return (torch.arange(length)[None] < keep).long()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = transformers.BertModel(
            transformers.BertConfig(
                vocab_size=VOCAB,
                hidden_size=HIDDEN,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                intermediate_size=INNER,
                max_position_embeddings=64,
            ),
            add_pooling_layer=False,
        )

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.net(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state


def encoder():
    def make(generator, batch, sequence):
        ids = torch.randint(0, VOCAB, (batch, sequence), generator=generator)
        types = torch.randint(0, 2, (batch, sequence), generator=generator)
        return ids, padded(generator, batch, sequence), types

    axes = {0: "batch", 1: "sequence"}
    return Net(
        Encoder(),
        {"input_ids": axes, "attention_mask": axes, "token_type_ids": axes},
        {"last_hidden_state": axes},
        make,
        [dict(batch=1, sequence=1), dict(batch=2, sequence=9), dict(batch=3, sequence=40)],
        dict(batch=2, sequence=6),
    )


class Decoder(nn.Module):
    """One step of generation: new tokens after a cache of `past` rows; the grown cache is a result."""

    def __init__(self):
        super().__init__()
        self.net = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=VOCAB,
                hidden_size=HIDDEN,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                num_key_value_heads=KV_HEADS,
                intermediate_size=INNER,
                max_position_embeddings=128,
            )
        )

    def forward(self, input_ids, attention_mask, position_ids, *past):
        cache = transformers.DynamicCache()
        for layer in range(LAYERS):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.net(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=cache,
            use_cache=True,
        )
        return (result.logits, *(t for layer in result.past_key_values.layers for t in (layer.keys, layer.values)))


def decoder():
    def make(generator, batch, sequence, past):
        ids = torch.randint(0, VOCAB, (batch, sequence), generator=generator)
        mask = torch.ones(batch, past + sequence, dtype=torch.long)
        if past > 1 and batch > 1:
            mask[1, : past // 2] = 0  # a prompt that was padded on the left
        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, past:]
        cache = [torch.randn(batch, KV_HEADS, past, HEAD, generator=generator) for _ in range(2 * LAYERS)]
        return ids, mask, positions, *cache

    slots = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    inputs = {
        "input_ids": {0: "batch", 1: "sequence"},
        "attention_mask": {0: "batch", 1: "total"},
        "position_ids": {0: "batch", 1: "sequence"},
    }
    inputs |= {f"past.{slot}": {0: "batch", 2: "past"} for slot in slots}
    outputs = {"logits": {0: "batch", 1: "sequence"}} | {f"present.{slot}": {0: "batch", 2: "total"} for slot in slots}
    return Net(
        Decoder(),
        inputs,
        outputs,
        make,
        [dict(batch=1, sequence=5, past=0), dict(batch=2, sequence=1, past=9), dict(batch=3, sequence=4, past=20)],
        dict(batch=2, sequence=3, past=5),
        rest=3,
    )


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = transformers.ViTForImageClassification(
            transformers.ViTConfig(
                hidden_size=HIDDEN,
                num_hidden_layers=LAYERS,
                num_attention_heads=HEADS,
                intermediate_size=INNER,
                image_size=32,
                patch_size=8,
                num_labels=10,
            )
        )

    def forward(self, pixel_values):
        return self.net(pixel_values=pixel_values).logits


def vision():
    def make(generator, batch):
        return (torch.randn(batch, 3, 32, 32, generator=generator),)

    return Net(
        Vision(),
        {"pixel_values": {0: "batch"}},
        {"logits": {0: "batch"}},
        make,
        [dict(batch=1), dict(batch=2), dict(batch=5)],
        dict(batch=3),
    )


def randomise(module, generator):
    """Fresh networks have norms of ones and biases of zeros, which would hide a wrong one."""
    for parameter in module.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data.add_(noise, alpha=0.1)


def export(net, example, path, traced, dim=torch.export.Dim):
    """dim: what stands for a symbol; its name alone lets the exporter find out in which range it may be."""
    names = dict(input_names=list(net.inputs), output_names=list(net.outputs))
    if not traced:
        torch.onnx.export(
            net.module, example, path, dynamo=False, opset_version=17, dynamic_axes=net.inputs | net.outputs, **names
        )
        return
    symbols = {name: dim(name) for axes in net.inputs.values() for name in axes.values()}
    shapes = [{axis: symbols[name] for axis, name in axes.items()} for axes in net.inputs.values()]
    if net.rest is not None:
        shapes = [*shapes[: net.rest], tuple(shapes[net.rest :])]
    torch.onnx.export(
        net.module,
        example,
        path,
        dynamo=True,
        opset_version=18,
        external_data=False,
        verbose=False,
        dynamic_shapes=tuple(shapes),
        **names,
    )


def run_onnx(path, tensors, outputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {node.name: tensors[node.name] for node in session.get_inputs()}
    return dict(zip(outputs, session.run(list(outputs), feeds), strict=True))


def expect_near(who, got, wanted, dtype):
    worst = 0.0
    for name, result in got.items():
        difference = np.abs(np.float32(result.float() if torch.is_tensor(result) else result) - wanted[name])
        worst = max(worst, difference.max() / np.abs(wanted[name]).max())
    print(f"  {who}: {worst:.1e} of the largest value away from torch in f32")
    if not worst < TOLERANCES[dtype]:
        sys.exit(f"{who}: the export is wrong")


def array_of(tensor):
    """NumPy knows bf16 by ml_dtypes alone."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def in_dtype(values, dtype):
    return tuple(v.to(dtype) if v.is_floating_point() else v for v in values)


def results_of(module, values):
    results = module(*values)
    return results if isinstance(results, tuple) else (results,)


def build(out, name, net, dtype):
    """The network in `dtype`; what is expected of it is what f32 makes of the same rounded weights and inputs."""
    suffix = SUFFIXES[dtype]
    print(name + suffix)
    net = dataclasses.replace(net, module=copy.deepcopy(net.module).to(dtype))
    wide = copy.deepcopy(net.module).float()
    generator = torch.Generator().manual_seed(8)
    models = {kind: out / f"{name}.{kind}{suffix}.onnx" for kind in ("traced", "scripted")}
    for kind, path in models.items():
        if kind == "scripted" and suffix:
            net.module.net.set_attn_implementation("eager")  # it writes the scale of the fused one in f32, beside halves
        export(net, in_dtype(net.make(generator, **net.example), dtype), path, kind == "traced")
    net.module.net.set_attn_implementation("sdpa")
    lines = []
    for i, sizes in enumerate(net.sizes):
        values = in_dtype(net.make(generator, **sizes), dtype)
        results = results_of(wide, in_dtype(values, torch.float32))
        tensors = {n: array_of(t) for n, t in zip([*net.inputs, *net.outputs], (*values, *results), strict=True)}
        file = f"{name}{suffix}.{i}.tensors"
        write_tensors(out / file, tensors)
        expect_near("torch", dict(zip(net.outputs, results_of(net.module, values), strict=True)), tensors, dtype)
        for path in models.values():
            if dtype != torch.bfloat16:  # which ONNX Runtime has few kernels for
                expect_near(path.name, run_onnx(path, tensors, net.outputs), tensors, dtype)
            lines.append(f"{path.name} {file}\n")
    return lines


def main(out):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    lines = []
    with torch.no_grad():
        for name, net in {"encoder": encoder(), "decoder": decoder(), "vision": vision()}.items():
            randomise(net.module, torch.Generator().manual_seed(7))
            net.module.eval()
            for dtype in SUFFIXES:
                lines += build(out, name, net, dtype)
    (out / "cases.txt").write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
