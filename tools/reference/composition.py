"""Reference values for the composition of Gaussian and pure mechanisms, from Google's dp-accounting.

Writes crates/heda-dp/tests/reference/composition.csv: mu of all Gaussian parts together, the epsilons
of the pure parts, delta, and the epsilon that dp-accounting finds for them, once from above and once
from below (its pessimistic and optimistic estimates enclose the truth). The tests read that file only.

    pip install dp-accounting==0.6.0
    python tools/reference/composition.py
"""

import csv
import math
import pathlib

from dp_accounting.pld import privacy_loss_distribution as pld

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/heda-dp/tests/reference/composition.csv"

CASES = [
    (0.05, []),
    (0.268, []),
    (1.0, []),
    (4.0, []),
    (0.268, [0.5]),
    (0.268, [0.1] * 10),
    (0.5, [0.2, 0.5, 0.9, 1.4]),
    (0.1, [3.0]),
    (1.0, [0.05] * 40),
    (0.3, [round(0.02 * k, 2) for k in range(1, 15)]),
    (2.0, [4.324, 5.671, 4.017, 6.962]),
    (0.0, [1.0]),
    (0.0, [0.1] * 30),
    (0.0, [0.3, 0.7, 1.1]),
]
DELTAS = [1e-4, 1e-5, 1e-8]


def losses(mu, pure, pessimistic):
    """The privacy loss distribution of all parts together."""
    # A fine grid for small losses, a coarser one where sums get large.
    step = 1e-4 if mu + sum(pure) < 5 else 1e-3
    options = {"value_discretization_interval": step, "pessimistic_estimate": pessimistic}
    parts = [pld.from_gaussian_mechanism(1 / mu, **options)] if mu > 0 else []
    parts += [pld.from_randomized_response(noise(e), 2, **options) for e in pure]
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return total


def noise(epsilon):
    """The probability with which a binary answer is replaced by a uniform one, for this epsilon."""
    return 2 / (1 + math.exp(epsilon))


def main():
    OUT.parent.mkdir(exist_ok=True)
    with open(OUT, "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["mu", "pure", "delta", "epsilon_low", "epsilon_high"])
        for mu, pure in CASES:
            above, below = losses(mu, pure, True), losses(mu, pure, False)
            for delta in DELTAS:
                low = below.get_epsilon_for_delta(delta)
                high = above.get_epsilon_for_delta(delta)
                rows.writerow([mu, " ".join(map(str, pure)), delta, f"{low:.6f}", f"{high:.6f}"])


if __name__ == "__main__":
    main()
