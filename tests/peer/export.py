# SPDX-License-Identifier: Apache-2.0
"""Three small networks with random weights, exported by both of torch's exporters at dynamic sizes.

    python export.py OUT            (packages: requirements.txt)

Writes into OUT, for an encoder, a decoder with a KV cache and a vision transformer:
    NET.traced.onnx, NET.scripted.onnx    the exporters that torch calls dynamo=True and dynamo=False
    NET.0.tensors, .1., .2.               at three sizes: every graph input and torch's output (see tensors.py)
    cases.txt                             one line a case: MODEL.onnx NET.i.tensors
Every case is run by ONNX Runtime as well, so that a wrong export is not taken for a fault of ours.
"""

import dataclasses
import logging
import pathlib
import sys
import warnings
from collections.abc import Callable

import numpy as np
import onnxruntime
import torch
import transformers
from torch import nn

from tensors import write_tensors

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, INNER = 100, 64, 2, 4, 2, 128
HEAD = HIDDEN // HEADS
TOLERANCE = 1e-4  # of the largest value


@dataclasses.dataclass
class Net:
    module: nn.Module
    inputs: dict[str, dict[int, str]]  # graph input -> {axis: symbol}
    outputs: dict[str, dict[int, str]]
    make: Callable[..., tuple]  # (generator, **sizes) -> one tensor for each input
    sizes: list[dict[str, int]]
    example: dict[str, int]  # sizes at the export; none is 0 or 1, which exporters take for constants


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


def export(net, example, path, traced):
    names = dict(input_names=list(net.inputs), output_names=list(net.outputs))
    if not traced:
        torch.onnx.export(
            net.module, example, path, dynamo=False, opset_version=17, dynamic_axes=net.inputs | net.outputs, **names
        )
        return
    symbols = {name: torch.export.Dim(name) for axes in net.inputs.values() for name in axes.values()}
    shapes = [{axis: symbols[name] for axis, name in axes.items()} for axes in net.inputs.values()]
    if isinstance(net.module, Decoder):
        shapes = [*shapes[:3], tuple(shapes[3:])]  # *past is one argument
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


def check(path, tensors, outputs):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {node.name: tensors[node.name] for node in session.get_inputs()}
    worst = 0.0
    for name, got in zip(outputs, session.run(list(outputs), feeds), strict=True):
        want = tensors[name]
        worst = max(worst, np.abs(got - want).max() / np.abs(want).max())
    print(f"  {path.name}: {worst:.1e} of the largest value away from torch")
    if not worst < TOLERANCE:
        sys.exit(f"{path}: the export is wrong")


def build(out, name, net):
    print(name)
    generator = torch.Generator().manual_seed(7)
    randomise(net.module, generator)
    net.module.eval()
    models = {kind: out / f"{name}.{kind}.onnx" for kind in ("traced", "scripted")}
    for kind, path in models.items():
        export(net, net.make(generator, **net.example), path, kind == "traced")
    lines = []
    for i, sizes in enumerate(net.sizes):
        values = net.make(generator, **sizes)
        results = net.module(*values)
        results = results if isinstance(results, tuple) else (results,)
        tensors = {n: t.numpy() for n, t in zip([*net.inputs, *net.outputs], (*values, *results), strict=True)}
        write_tensors(out / f"{name}.{i}.tensors", tensors)
        for path in models.values():
            check(path, tensors, net.outputs)
            lines.append(f"{path.name} {name}.{i}.tensors\n")
    return lines


def main(out):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(7)
    with torch.no_grad():
        nets = {"encoder": encoder(), "decoder": decoder(), "vision": vision()}
        lines = [line for name, net in nets.items() for line in build(out, name, net)]
    (out / "cases.txt").write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
