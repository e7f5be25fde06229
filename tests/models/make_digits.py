# SPDX-License-Identifier: Apache-2.0
"""Makes digits.onnx: a very small vision transformer that reads digits which this script draws itself.

    python make_digits.py            (torch, onnx, onnxruntime, numpy as in ../peer/requirements.txt; under two minutes)

Writes beside itself
    digits.onnx               image f32[batch,1,16,16] -> probabilities f32[batch,10], opset 17
    digits_expected.tensors   8 images, the 7th is the sample, and ONNX Runtime's answers (see ../peer/tensors.py)
    digits_sample.txt         one image as 16 lines of 16 characters, ten levels of ink " .:-=+*#%@"
and fails when the net reads fewer than 97 % of digits that it has not seen.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peer"))
from tensors import write_tensors  # noqa: E402

SIZE, PATCH, WIDTH, HEADS, LAYERS = 16, 4, 32, 2, 2
TOKENS = (SIZE // PATCH) ** 2
LEVELS = " .:-=+*#%@"

# Two alphabets of 5 x 7 dots, one row a word: a plain one and a square one.
PLAIN = """
01110 10001 10011 10101 11001 10001 01110   00100 01100 00100 00100 00100 00100 01110
01110 10001 00001 00110 01000 10000 11111   01110 10001 00001 00110 00001 10001 01110
00010 00110 01010 10010 11111 00010 00010   11111 10000 11110 00001 00001 10001 01110
00110 01000 10000 11110 10001 10001 01110   11111 00001 00010 00100 01000 01000 01000
01110 10001 10001 01110 10001 10001 01110   01110 10001 10001 01111 00001 00010 01100
"""
SQUARE = """
11111 10001 10001 10001 10001 10001 11111   00010 00110 01010 00010 00010 00010 00010
11111 00001 00001 11111 10000 10000 11111   11111 00001 00001 01111 00001 00001 11111
10001 10001 10001 11111 00001 00001 00001   11111 10000 10000 11111 00001 00001 11111
11111 10000 10000 11111 10001 10001 11111   11111 00001 00001 00010 00010 00100 00100
11111 10001 10001 11111 10001 10001 11111   11111 10001 10001 11111 00001 00001 11111
"""


def glyphs(text):
    return np.array([[int(dot) for dot in row] for row in text.split()], np.float64).reshape(10, 7, 5)


GLYPHS = np.pad(np.stack([glyphs(PLAIN), glyphs(SQUARE)]), ((0, 0), (0, 0), (1, 1), (1, 1)))


def bilinear(glyph, row, column):
    """Samples one padded glyph at fractional positions; outside it there is no ink."""
    height, width = glyph.shape
    row, column = np.clip(row, 0, height - 1.001), np.clip(column, 0, width - 1.001)
    r, c = row.astype(int), column.astype(int)
    fr, fc = row - r, column - c
    top = glyph[r, c] * (1 - fc) + glyph[r, c + 1] * fc
    bottom = glyph[r + 1, c] * (1 - fc) + glyph[r + 1, c + 1] * fc
    return top * (1 - fr) + bottom * fr


def draw(rng, digit):
    """One digit, turned, slanted, scaled, shifted, thickened and covered with noise at random."""
    glyph = GLYPHS[rng.integers(len(GLYPHS)), digit]
    turn, slant = rng.uniform(-0.25, 0.25), rng.uniform(-0.25, 0.25)
    scale = rng.uniform(1.4, 2.0, 2)
    centre = (SIZE - 1) / 2 + rng.uniform(-1.5, 1.5, 2)
    y, x = np.mgrid[:SIZE, :SIZE]
    y, x = (y - centre[0]) / scale[0], (x - centre[1]) / scale[1]
    y, x = y * np.cos(turn) - x * np.sin(turn), y * np.sin(turn) + x * np.cos(turn)
    ink = bilinear(glyph, y + 4, x + slant * y + 3)
    ink = np.clip(ink * rng.uniform(0.9, 1.8) + rng.normal(0, 0.08, ink.shape), 0, 1)
    return ink


def draw_many(rng, count):
    labels = rng.integers(10, size=count)
    images = np.stack([draw(rng, digit) for digit in labels])[:, None].astype(np.float32)
    return torch.from_numpy(images), torch.from_numpy(labels)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        head = WIDTH // HEADS
        qkv = self.qkv(self.norm1(x)).split(WIDTH, -1)
        q, k, v = (t.reshape(-1, TOKENS, HEADS, head).transpose(1, 2) for t in qkv)
        weights = (q @ k.transpose(2, 3) * head**-0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(-1, TOKENS, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(PATCH * PATCH, WIDTH)
        self.position = nn.Parameter(torch.randn(TOKENS, WIDTH) * 0.1)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def logits(self, image):
        n = SIZE // PATCH
        patches = image.reshape(-1, n, PATCH, n, PATCH).transpose(2, 3).reshape(-1, TOKENS, PATCH * PATCH)
        return self.head(self.norm(self.blocks(self.patch(patches) + self.position)).mean(1))

    def forward(self, image):
        return self.logits(image).softmax(-1)


def train(net, rng, steps=2500, batch=128):
    pool, labels = draw_many(rng, 30000)
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    for step in range(steps):
        pick = torch.from_numpy(rng.integers(len(pool), size=batch))
        loss = nn.functional.cross_entropy(net.logits(pool[pick]), labels[pick], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 500 == 499:
            print(f"step {step + 1}: loss {loss.item():.4f}")


def write_sample(path, image):
    levels = np.round(image * (len(LEVELS) - 1)).astype(int)
    path.write_text("".join("".join(LEVELS[v] for v in row) + "\n" for row in levels))
    return (levels / (len(LEVELS) - 1)).astype(np.float32)


def main():
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    net = Reader()
    train(net, rng)
    net.eval()
    images, labels = draw_many(rng, 4000)
    with torch.no_grad():
        right = (net(images).argmax(-1) == labels).double().mean().item()
    print(f"{100 * right:.2f} % of 4000 unseen digits")
    if right < 0.97:
        sys.exit("not good enough to be kept")

    path = HERE / "digits.onnx"
    torch.onnx.export(
        net,
        (images[:2],),
        path,
        dynamo=False,
        opset_version=17,
        input_names=["image"],
        output_names=["probabilities"],
        dynamic_axes={"image": {0: "batch"}, "probabilities": {0: "batch"}},
    )
    onnx.checker.check_model(onnx.load(path))
    one_each = np.stack([draw(rng, digit) for digit in (0, 1, 2, 3, 4, 5, 8, 9)])[:, None].astype(np.float32)
    one_each[6, 0] = write_sample(HERE / "digits_sample.txt", one_each[6, 0])
    (answer,) = onnxruntime.InferenceSession(path).run(None, {"image": one_each})
    print("read as", answer.argmax(-1), "with", answer.max(-1).round(3))
    write_tensors(HERE / "digits_expected.tensors", {"image": one_each, "probabilities": answer})
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
