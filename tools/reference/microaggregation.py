#!/usr/bin/env python3
"""Reference values for crates/heda-dp, by another program: Algorithm 1 (automatic epsilon) and
Algorithm 2 (clusters as printed and from fixed corners) on the bundled data sets.

Run from the root of the repository; writes crates/heda-dp/tests/reference/microaggregation.json.
Needs Python 3 and nothing else. Slow on purpose: every step is the text of the paper.
"""

import collections
import csv
import json
import math
import statistics

SETS = {"bcwd": 16, "crx": 18, "car": 29}


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return None


def coded(cells):
    numbers = [number(c) for c in cells]
    if any(n is None and c != "?" for n, c in zip(numbers, cells)):
        levels = sorted(set(cells))
        return [float(levels.index(c)) for c in cells]
    median = statistics.median_high([n for n in numbers if n is not None])
    return [median if n is None else n for n in numbers]


def scaled(column):
    low, high = min(column), max(column)
    return [(x - low) / (high - low) for x in column]


def load(name):
    with open(f"datasets/{name}.csv", newline="") as file:
        rows = list(csv.reader(file))[1:]
    columns = [scaled(coded([row[j] for row in rows])) for j in range(len(rows[0]) - 1)]
    return list(zip(*columns))


def automatic(column):
    rows = len(column)
    rho = collections.Counter(column).most_common(1)[0][1] / rows
    return max(column) / (max(column) - min(column)) * math.log((rows - 1) * rho / (1 - rho))


def clusters(rows, k, moving):
    left, found = list(range(len(rows))), []
    width = range(len(rows[0]))
    high, low = [1.0] * len(width), [0.0] * len(width)
    while len(left) >= 2 * k:
        if moving:
            high = [max(rows[i][j] for i in left) for j in width]
            low = [min(rows[i][j] for i in left) for j in width]
        weight = [1.0 / ((h - l) * (h - l)) if h != l else 0.0 for h, l in zip(high, low)]
        for corner in (high, low):
            def key(i):
                distance = 0.0
                for x, c, w in zip(rows[i], corner, weight):
                    distance += (x - c) * (x - c) * w
                return (distance, rows[i], i)
            left.sort(key=key)
            found.append(sorted(left[:k]))
            left = left[k:]
    return found + ([sorted(left)] if left else [])


def digest(found):
    text = ";".join(",".join(map(str, cluster)) for cluster in found)
    return {"clusters": len(found), "first": found[0], "fnv1a": fnv1a(text.encode())}


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def main():
    result = {}
    for name, k in SETS.items():
        rows = load(name)
        result[name] = {
            "epsilons": [automatic(column) for column in zip(*rows)],
            "size": k,
            "moving": digest(clusters(rows, k, True)),
            "fixed": digest(clusters(rows, k, False)),
        }
    with open("crates/heda-dp/tests/reference/microaggregation.json", "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


main()
