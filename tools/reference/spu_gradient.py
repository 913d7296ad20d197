"""Milliseconds of one gradient of logistic regression in SPU, to stand beside `heda bench --only engines`.

    pip install spu==0.9.5
    python tools/reference/spu_gradient.py ROWS COLUMNS PROTOCOL PARTIES

PROTOCOL is aby3 (three parties, of which one may be curious), semi2k (triples from a third party that all trust)
or cheetah (two parties). Parties are threads on this machine, as SPU's own simulator runs them, and follow the
protocol. The time of six gradients less that of one, divided by five: sharing and opening are not in it.
"""

import statistics
import sys
import time

import jax
import numpy as np
import spu
from spu.utils import simulation

ROWS, COLUMNS, PROTOCOL, PARTIES = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
REPEATS = 5


def descent(steps):
    def run(rows, labels, beta):
        for _ in range(steps):
            beta = beta - rows.T @ (jax.nn.sigmoid(rows @ beta) - labels) / ROWS
        return beta

    return run


def main():
    kind = getattr(spu.ProtocolKind, PROTOCOL.upper())
    parties = simulation.Simulator.simple(PARTIES, kind, spu.FieldType.FM64)
    generator = np.random.default_rng(0)
    rows = generator.random((ROWS, COLUMNS), dtype=np.float32)
    labels = (generator.random(ROWS) > 0.5).astype(np.float32)
    beta = np.zeros(COLUMNS, np.float32)
    exact = descent(6)(rows, labels, beta)

    def took(steps):
        job = simulation.sim_jax(parties, descent(steps))
        began = time.perf_counter()
        result = job(rows, labels, beta)
        seconds = time.perf_counter() - began
        assert steps != 6 or np.abs(result - exact).max() < 0.01
        return seconds

    took(1)
    one, six = (statistics.median(took(steps) for _ in range(REPEATS)) for steps in [1, 6])
    print(f"SPU {PROTOCOL}, {PARTIES} parties, {ROWS} x {COLUMNS}: {200 * (six - one):.0f} ms a gradient")


if __name__ == "__main__":
    main()
