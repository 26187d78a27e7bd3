#!/usr/bin/env python3
"""Trains the learned model of the detector: train.py [--evaluate | --domains]

The features come from the detector itself (`detection-bench --features`), so they are written once, in Rust. This fits a
network with one hidden layer to the kinds of the rows of `train` and `development`, keeps the features that contribute most,
and fits it to these again. It writes the weights to `shared/detection/weights.bin`, those of the features in four bits, and
the probabilities of 1,000 rows to `probabilities.csv`, with which a test compares the detector. Before, it trains without
a fifth of the writers at a time, and prints how the rows of those writers are classified, as in docs/detection.md; with
--evaluate, only this; with --domains, the same for one domain at a time. The probabilities of these models are also what
the temperature is fitted to.

Needs Python 3.11 with `requirements.txt`, and a release build: cargo build --release -p hearback-detection-bench
"""
import json
import struct
import subprocess
import sys
import tempfile
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_matrix, diags, hstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score
from sklearn.neural_network import MLPClassifier

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CLASSES = ["accepted", "neutral", "rejected"]
# What the features of each block are multiplied with before training, whose penalty is the same for all.
# Vectors, numbers, words, characters, symbols, shapes, replies, answers, queries; measures, which are centred and divided by
# their standard deviation.
FACTORS = [1.0, 1.0, 1.5, 1.5, 1.0, 2.0, 1.0, 1.0, 1.0, 0.25]
# The least standard deviation that a measure is divided by. A mark that few rows have would otherwise decide alone.
LEAST_DEVIATION = 0.25
HIDDEN = 64
# How many features have weights, the passes over all rows to see which these are, and to train on them, and the passes
# after these whose weights are averaged.
KEPT = 11_000
ROUGH, PASSES, AVERAGED = 4, 5, 4
FOLDS = 5
COMPARED = 1000
# Features whose bits are read together.
GROUP = 64


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


def comparable(matrix, blocks):
    """The features in comparable sizes, what each was multiplied with, and what was subtracted before."""
    first = blocks[-2]
    factors, centres = np.repeat(FACTORS, np.diff(blocks)), np.zeros(blocks[-1])
    measures = matrix[:, first:].toarray()
    centres[first:] = measures.mean(0)
    factors[first:] /= np.maximum(measures.std(0), LEAST_DEVIATION)
    dense = csr_matrix((measures - centres[first:]) * factors[first:])
    sparse = matrix[:, :first] @ diags(factors[:first])
    return hstack([sparse, dense]).tocsr().astype(np.float32), factors, centres


def network(matrix, kinds, passes):
    network = MLPClassifier(
        (HIDDEN,), alpha=0.01, learning_rate_init=0.002, batch_size=256, max_iter=passes, random_state=1, warm_start=True
    )
    with warnings.catch_warnings():
        # More passes would only fit these writers better.
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(matrix, kinds)
        network.set_params(learning_rate_init=0.001, max_iter=1)
        # Each pass favours the rows that it saw last. The mean of several is better on other writers.
        after = [deepcopy(network.fit(matrix, kinds)) for _ in range(AVERAGED)]
    network.coefs_ = [np.mean(weights, axis=0) for weights in zip(*(each.coefs_ for each in after))]
    network.intercepts_ = [np.mean(biases, axis=0) for biases in zip(*(each.intercepts_ for each in after))]
    return network


def fit(matrix, kinds):
    """A network on the features that contribute most, and their indexes."""
    weights = network(matrix, kinds, ROUGH).coefs_[0]
    squares = np.asarray(matrix.multiply(matrix).mean(0)).ravel()
    kept = np.sort(np.argsort(-squares * (weights**2).sum(1))[:KEPT])
    return network(matrix[:, kept], kinds, PASSES), kept


def held_out(matrix, kinds, groups, folds):
    """The logits of each row by a network that has not seen its group."""
    names = sorted(set(groups))

    def logits(held):
        network, kept = fit(matrix[~held], kinds[~held])
        return np.log(network.predict_proba(matrix[held][:, kept]) + 1e-12)

    rows = [np.isin(groups, names[fold::folds]) for fold in range(folds)]
    of = np.zeros((len(kinds), kinds.max() + 1))
    for held, found in zip(rows, Parallel(n_jobs=-1)(delayed(logits)(held) for held in rows)):
        of[held] = found
    return of


def probabilities(logits, classes):
    """The probability of each class, that of its kinds together; `classes` has the class of each kind."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True) @ np.eye(len(CLASSES))[classes]


def temperature(logits, classes, truth):
    """What logits are multiplied with so that the probabilities of unseen writers are as often right as they say."""
    of_truth = lambda factor: probabilities(factor * logits, classes)[np.arange(len(truth)), truth]
    return min(np.arange(0.4, 1.6, 0.02), key=lambda factor: -np.log(of_truth(factor) + 1e-12).mean())


def evaluate(probabilities, labels, groups, name):
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
    # In the order of the detector: by class, and by name.
    names = sorted({(row["label"], row["kind"]) for row in rows})
    kinds = np.array([names.index((row["label"], row["kind"])) for row in rows])
    classes = np.array([CLASSES.index(label) for label, _ in names])
    writers = np.array([row["writer"] for row in rows])
    matrix, blocks = features(files)
    scaled, factors, centres = comparable(matrix, blocks)
    if "--domains" in sys.argv:
        domains = np.array([row["domain"] for row in rows])
        logits = held_out(scaled, kinds, domains, len(set(domains)))
        factor = temperature(logits, classes, classes[kinds])
        evaluate(probabilities(factor * logits, classes), labels, domains, "domain")
        return
    logits = held_out(scaled, kinds, writers, FOLDS)
    factor = temperature(logits, classes, classes[kinds])
    evaluate(probabilities(factor * logits, classes), labels, writers, "writer")
    if "--evaluate" in sys.argv:
        return
    trained, kept = fit(scaled, kinds)
    (first, second), (bias, biases) = trained.coefs_, trained.intercepts_
    weights = first * factors[kept, None]
    scales = (np.abs(weights).max(1) / 7).astype("<f4")
    quantized = np.round(weights / scales[:, None]).astype(np.int8)
    bias = bias - centres[kept] @ (quantized * scales[:, None])
    second, biases = (factor * second).astype("<f4"), (factor * biases).astype("<f4")
    file = bias.astype("<f4").tobytes() + second.tobytes() + biases.tobytes()
    for low in range(0, blocks[-1], GROUP):
        before, within = np.searchsorted(kept, [low, low + GROUP])
        bits = sum(1 << int(index - low) for index in kept[before:within])
        file += struct.pack("<QH", bits, before)
    for scale, row in zip(scales, quantized):
        # Two numbers in a byte: one of the first half of the units in its lower half, one of the second in the other.
        low, high = np.split(row, 2)
        file += scale.tobytes() + ((low & 15) | (high << 4)).astype(np.uint8).tobytes()
    (ROOT / "shared/detection/weights.bin").write_bytes(file)
    # Every so many rows, so that all writers are among them.
    compared = np.linspace(0, len(rows) - 1, COMPARED).astype(int)
    hidden = np.maximum(matrix[compared][:, kept] @ (quantized * scales[:, None]) + bias, 0)
    computed = probabilities(hidden @ second + biases, classes)
    lines = [",".join([rows[at]["id"], *(f"{p:.4f}" for p in numbers)]) for at, numbers in zip(compared, computed)]
    (HERE / "probabilities.csv").write_text("\n".join(lines) + "\n")
    print(f"{len(rows)} rows, {len(file)} bytes of weights, logits times {factor:.2f}")


if __name__ == "__main__":
    main()
