#!/usr/bin/env python3
"""Trains the learned model of the detector: train.py [--evaluate | --domains]

The features come from the detector itself (`detection-bench --features`), so they are written once, in Rust. This fits a
multinomial logistic regression to the rows of `train` and `development`, and writes the weights as signed bytes to
`shared/detection/weights.bin`, and the probabilities of 1,000 rows to `probabilities.csv`, with which a test compares the
detector. Before, it trains without a fifth of the writers at a time, and prints how the rows of those writers are
classified, as in docs/detection.md; with --evaluate, only this; with --domains, the same for one domain at a time. The probabilities of these models are also what the
temperature is fitted to.

Needs Python 3.11 with `requirements.txt`, and a release build: cargo build --release -p hearback-detection-bench
"""
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CLASSES = ["accepted", "neutral", "rejected"]
# What the features of each block are multiplied with before the regression, whose penalty is the same for all.
# Vectors, numbers, words, characters, symbols, shapes, replies.
FACTORS = [1.0, 1.0, 1.5, 1.5, 1.0, 2.0, 1.0]
# The inverse strength of the penalty.
C = 0.5
FOLDS = 5
COMPARED = 1000


def features(files):
    """The matrix of the features of all rows of these files, and the first index of each block."""
    with tempfile.TemporaryDirectory() as folder:
        bench = ROOT / "target/release/detection-bench"
        subprocess.run([bench, *files, "--features", folder], check=True)
        read = lambda name, kind: np.fromfile(Path(folder, name), kind)
        counts, blocks = read("counts", "<u4"), read("blocks", "<u4").astype(int)
        pointers = np.concatenate([[0], np.cumsum(counts.astype(np.int64))])
        values, indexes = read("values", "<f4").astype(float), read("indexes", "<u4").astype(np.int32)
    matrix = csr_matrix((values, indexes, pointers), shape=(len(counts), blocks[-1]))
    matrix.sum_duplicates()
    return matrix, blocks


def fit(matrix, labels):
    return LogisticRegression(C=C, max_iter=400).fit(matrix, labels)


def held_out(matrix, labels, groups, folds):
    """The logits of each row by a model that has not seen its group."""
    logits = np.zeros((len(labels), len(CLASSES)))
    names = sorted(set(groups))
    for fold in range(folds):
        held = np.isin(groups, names[fold::folds])
        logits[held] = fit(matrix[~held], labels[~held]).decision_function(matrix[held])
    return logits


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def temperature(logits, labels):
    """What logits are multiplied with so that the probabilities of unseen writers are as often right as they say."""
    truth = np.searchsorted(CLASSES, labels)
    loss = lambda factor: -np.log(softmax(factor * logits)[np.arange(len(truth)), truth] + 1e-12).mean()
    return min(np.arange(0.4, 1.6, 0.02), key=loss)


def evaluate(logits, labels, groups, name):
    probabilities = softmax(logits)
    best = np.array(CLASSES)[probabilities.argmax(1)]
    print(f"| {name} | rows | macro-F1 | rejections: precision | recall | false rejections |\n|---|---|---|---|---|---|")
    for group in [*sorted(set(groups)), "all"]:
        rows = np.full(len(labels), True) if group == "all" else groups == group
        said, right = best[rows], labels[rows]
        kept = right != "rejected"
        numbers = [
            f1_score(right, said, average="macro"),
            np.mean(right[said == "rejected"] == "rejected"),
            np.mean(said[~kept] == "rejected"),
            np.mean(said[kept] == "rejected"),
        ]
        print("|", " | ".join([group, str(rows.sum()), *(f"{number:.2f}" for number in numbers)]), "|")
    print("\n| probability of the most probable class | messages | right |\n|---|---|---|")
    highest = probabilities.max(1)
    for low in np.arange(0.3, 1.0, 0.1):
        rows = (highest >= low) & (highest < low + 0.1)
        print(f"| {low:.1f} to {low + 0.1:.1f} | {rows.sum()} | {np.mean(best[rows] == labels[rows]):.2f} |")


def main():
    files = [path for part in ("train", "development") for path in sorted((HERE / "corpus" / part).glob("*.jsonl"))]
    rows = [json.loads(line) for path in files for line in path.read_text(encoding="utf-8").split("\n") if line]
    labels = np.array([row["label"] for row in rows])
    writers = np.array([row["writer"] for row in rows])
    matrix, blocks = features(files)
    ranges = list(zip(blocks[:-1], blocks[1:]))
    factors = np.concatenate([np.full(to - first, factor) for (first, to), factor in zip(ranges, FACTORS)])
    scaled = (matrix @ diags(factors)).tocsr()
    if "--domains" in sys.argv:
        domains = np.array([row["domain"] for row in rows])
        evaluate(held_out(scaled, labels, domains, len(set(domains))), labels, domains, "domain")
        return
    logits = held_out(scaled, labels, writers, FOLDS)
    factor = temperature(logits, labels)
    evaluate(factor * logits, labels, writers, "writer")
    if "--evaluate" in sys.argv:
        return
    model = fit(scaled, labels)
    weights = factor * model.coef_ * factors
    bias = (factor * model.intercept_).astype("<f4")
    scales, quantized = [], np.zeros(weights.shape, np.int8)
    for first, to in ranges:
        scales.append(np.float32(np.abs(weights[:, first:to]).max() / 127))
        quantized[:, first:to] = np.round(weights[:, first:to] / scales[-1])
    header = struct.pack(f"<{len(scales)}f", *scales) + bias.tobytes()
    (ROOT / "shared/detection/weights.bin").write_bytes(header + quantized.T.tobytes())
    # Every so many rows, so that all writers are among them.
    compared = np.linspace(0, len(rows) - 1, COMPARED).astype(int)
    restored = np.concatenate([quantized[:, first:to] * scale for (first, to), scale in zip(ranges, scales)], axis=1)
    probabilities = softmax(matrix[compared] @ restored.T + bias)
    lines = [",".join([rows[at]["id"], *(f"{p:.4f}" for p in numbers)]) for at, numbers in zip(compared, probabilities)]
    (HERE / "probabilities.csv").write_text("\n".join(lines) + "\n")
    print(f"{len(rows)} rows, {len(header) + quantized.size} bytes of weights, logits times {factor:.2f}")


if __name__ == "__main__":
    main()
