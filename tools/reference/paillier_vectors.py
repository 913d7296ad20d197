#!/usr/bin/env python3
"""Known answers for Paillier and textbook RSA, from plain Python integers.

Nothing here shares code with the crate: encryption is the textbook's (1 + N)^m r^N mod N^2 and
decryption is checked by the textbook's formula before a vector is written.

    python3 tools/reference/paillier_vectors.py > repro/heda-paper/tests/vectors/paillier.json
"""

import hashlib
import json
import math
import random

rng = random.Random("heda paillier vectors")


def is_prime(n):
    if n < 4:
        return n in (2, 3)
    if n % 2 == 0:
        return False
    s = ((n - 1) & -(n - 1)).bit_length() - 1
    d = (n - 1) >> s
    for _ in range(40):
        x = pow(rng.randrange(2, n - 1), d, n)
        if x in (1, n - 1):
            continue
        for _ in range(s - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime(bits):
    while True:
        candidate = rng.getrandbits(bits) | (3 << (bits - 2)) | 3
        if all(candidate % small for small in (3, 5, 7, 11, 13, 17, 19, 23)) and is_prime(candidate):
            return candidate


def primes(bits):
    while True:
        p, q = sorted((prime(bits // 2), prime(bits // 2)))
        if p != q and math.gcd(p - 1, q - 1) == 2 and all((x - 1) % 65537 for x in (p, q)):
            return p, q


def signed_hex(value):
    return ("-" if value < 0 else "") + format(abs(value), "x")


def wrap(value, n):
    value %= n
    return value - n if value > n // 2 else value


def encrypt(m, r, n):
    return pow(1 + n, m % n, n * n) * pow(r, n, n * n) % (n * n)


def decrypt(c, p, q):
    n, order = p * q, (p - 1) * (q - 1)
    return wrap((pow(c, order, n * n) - 1) // n * pow(order, -1, n), n)


def randomiser_base(n):
    """h = -y^2 where y is a hash of N, as the crate documents it."""
    bits = n.bit_length()
    encoded = n.to_bytes((bits + 7) // 8, "big")
    stream = b"".join(
        hashlib.sha256(b"heda paillier randomiser" + block.to_bytes(8, "big") + encoded).digest()
        for block in range((bits + 128 + 255) // 256)
    )
    y = int.from_bytes(stream, "big") % n
    return -y * y % n


def key_vectors(bits):
    p, q = primes(bits)
    n = p * q
    assert n.bit_length() == bits
    half = (n - 1) // 2
    h_n = pow(randomiser_base(n), n, n * n)
    values = [0, 1, -1, 2, half, -half] + [wrap(rng.getrandbits(bits + 64), n) for _ in range(4)]
    weights = [0, 1, -1, 2**63 - 1, -(2**63), 3, -7, rng.getrandbits(64), -rng.getrandbits(64), 5]
    full, short, scaled = [], [], []
    for m, w in zip(values, weights):
        r = rng.randrange(2, n)
        c = encrypt(m, r, n)
        assert decrypt(c, p, q) == m
        full.append({"m": signed_hex(m), "r": format(r, "x"), "c": format(c, "x")})
        a = rng.getrandbits(bits // 2)
        c2 = pow(1 + n, m % n, n * n) * pow(h_n, a, n * n) % (n * n)
        assert decrypt(c2, p, q) == m
        short.append({"m": signed_hex(m), "a": format(a, "x"), "c": format(c2, "x")})
        power = pow(c, w, n * n)
        assert decrypt(power, p, q) == wrap(m * w, n)
        scaled.append({"c": format(c, "x"), "weight": signed_hex(w), "result": format(power, "x"),
                       "m": signed_hex(wrap(m * w, n))})
    product = 1
    for item in scaled:
        product = product * int(item["result"], 16) % (n * n)
    total = wrap(sum(m * w for m, w in zip(values, weights)), n)
    assert decrypt(product, p, q) == total
    rsa = []
    for m in [0, 1, 2, n - 1] + [rng.randrange(n) for _ in range(3)]:
        rsa.append({"m": format(m, "x"), "c": format(pow(m, 65537, n), "x")})
    return {
        "bits": bits, "p": format(p, "x"), "q": format(q, "x"),
        "full": full, "short": short, "scaled": scaled,
        "combination": {"result": format(product, "x"), "m": signed_hex(total)},
        "rsa": rsa,
    }


print(json.dumps({"keys": [key_vectors(bits) for bits in (256, 2048, 3072)]}, indent=1))
