"""Milliseconds of one gradient of logistic regression in CrypTen, to stand beside `heda bench --only engines`.

    SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL=True pip install crypten==0.4.1 torch numpy==1.26.4
    python tools/reference/crypten_gradient.py ROWS COLUMNS PARTIES

Rows, labels and coefficients are shared among the parties, who are processes on this machine; triples come from a
third party that all trust (CrypTen's default, simulated by the first). Nothing is opened. Parties follow the
protocol; whoever holds all shares but one's own must not collude with that one. The middle of ten gradients.
"""

import statistics
import sys
import time
import types

import torch

# crypten.nn imports a part of torch's ONNX exporter that newer versions of torch lack; nothing here uses it.
for name in ["torch.onnx._internal.registration", "torch.onnx.symbolic_registry"]:
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].registry = None

import crypten
import crypten.mpc

ROWS, COLUMNS, PARTIES = (int(argument) for argument in sys.argv[1:4])
torch.set_num_threads(1)


@crypten.mpc.run_multiprocess(world_size=PARTIES)
def gradients():
    torch.manual_seed(0)
    rows = crypten.cryptensor(torch.rand(ROWS, COLUMNS))
    labels = crypten.cryptensor((torch.rand(ROWS) > 0.5).float())
    beta = crypten.cryptensor(torch.zeros(COLUMNS))
    took = []
    for _ in range(11):
        began = time.perf_counter()
        derivatives = rows.matmul(beta).sigmoid() - labels
        beta = beta - rows.t().matmul(derivatives) * (1 / ROWS)
        took.append(time.perf_counter() - began)
    assert torch.isfinite(beta.get_plain_text()).all()
    return statistics.median(took[1:])


if __name__ == "__main__":
    print(f"CrypTen, {PARTIES} parties, {ROWS} x {COLUMNS}: {1000 * max(gradients()):.0f} ms a gradient")
