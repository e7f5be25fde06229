# SPDX-License-Identifier: Apache-2.0
"""Stores what ONNX Runtime computes for all-MiniLM-L6-v2 on two small batches, the second one padded.

    python minilm.py ~/.cache/rlx/minilm ../models/minilm_expected.tensors

The first folder holds model.onnx and vocab.txt; the sentences use whole words of the vocabulary only, so no tokenizer
is needed. The stored names are a.* (batch 1 x 16) and b.* (batch 2 x 9).
"""

import hashlib
import pathlib
import sys

import numpy as np
import onnxruntime

from tensors import write_tensors

MODEL_SHA256 = "759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e"
BATCHES = {
    "a": ["the cat sat on a warm stone wall and watched the small birds ."],
    "b": ["the river was very cold today", "a dog slept"],
}


def encode(sentences, vocab):
    rows = [[vocab["[CLS]"], *(vocab[word] for word in s.split()), vocab["[SEP]"]] for s in sentences]
    length = max(map(len, rows)) + (len(rows) > 1)  # one column that is padding in every row
    ids = np.zeros((len(rows), length), np.int64)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
        mask[i, : len(row)] = 1
    types = np.zeros_like(ids)
    types[:, length // 2 :] = len(rows) > 1  # so that the second row of the type embedding is read too
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def main(folder, out):
    folder = pathlib.Path(folder)
    model = (folder / "model.onnx").read_bytes()
    if hashlib.sha256(model).hexdigest() != MODEL_SHA256:
        sys.exit(f"{folder / 'model.onnx'}: not the file whose outputs are stored")
    words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    vocab = {word: i for i, word in enumerate(words)}
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    tensors = {}
    for tag, sentences in BATCHES.items():
        feeds = encode(sentences, vocab)
        (hidden,) = session.run(["last_hidden_state"], feeds)
        for name, array in {**feeds, "last_hidden_state": hidden}.items():
            tensors[f"{tag}.{name}"] = array
            print(f"{tag}.{name}", array.dtype, array.shape)
    write_tensors(out, tensors)


if __name__ == "__main__":
    main(*sys.argv[1:])
