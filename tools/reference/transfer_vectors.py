#!/usr/bin/env python3
"""Known answers for transfers, from the text of docs/transfers.md.

Nothing here shares code with the crate: AES, Ristretto and POLYVAL are the plain text of their
standards, rows are treated one by one, and the relation w = v + u*Delta is checked before a vector
is written. Needs Python 3 and nothing else; takes a minute.

    python3 tools/reference/transfer_vectors.py > crates/heda-crypto/tests/vectors/transfer.json
"""

import hashlib
import json

# --- AES-128 (FIPS 197) ---------------------------------------------------------------------------


def xtime(a):
    return ((a << 1) ^ (0x1B if a & 0x80 else 0)) & 0xFF


def byte_product(a, b):
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = xtime(a), b >> 1
    return product


def make_sbox():
    box = []
    for a in range(256):
        b = next((c for c in range(256) if byte_product(a, c) == 1), 0)
        rotated = [((b << n) | (b >> (8 - n))) & 0xFF for n in range(5)]
        box.append(rotated[0] ^ rotated[1] ^ rotated[2] ^ rotated[3] ^ rotated[4] ^ 0x63)
    return box


SBOX = make_sbox()
TWICE = [xtime(a) for a in range(256)]
SHIFT = [4 * ((c + r) % 4) + r for c in range(4) for r in range(4)]


class Aes:
    def __init__(self, key):
        words = [list(key[4 * n : 4 * n + 4]) for n in range(4)]
        constant = 1
        for n in range(4, 44):
            word = words[n - 1]
            if n % 4 == 0:
                word = [SBOX[b] for b in word[1:] + word[:1]]
                word[0] ^= constant
                constant = xtime(constant)
            words.append([a ^ b for a, b in zip(words[n - 4], word)])
        self.keys = [sum(words[4 * r : 4 * r + 4], []) for r in range(11)]

    def encrypt(self, number):
        """Of a number of 128 bits, lowest byte first."""
        state = [a ^ b for a, b in zip(number.to_bytes(16, "little"), self.keys[0])]
        for turn in range(1, 11):
            state = [SBOX[state[place]] for place in SHIFT]
            if turn < 10:
                mixed = []
                for c in range(0, 16, 4):
                    a = state[c : c + 4]
                    every = a[0] ^ a[1] ^ a[2] ^ a[3]
                    mixed += [a[r] ^ every ^ TWICE[a[r] ^ a[(r + 1) % 4]] for r in range(4)]
                state = mixed
            state = [a ^ b for a, b in zip(state, self.keys[turn])]
        return int.from_bytes(bytes(state), "little")


TEST = Aes(bytes(range(16))).encrypt(int.from_bytes(bytes(17 * n for n in range(16)), "little"))
assert TEST.to_bytes(16, "little").hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"

# --- Ristretto (RFC 9496) -------------------------------------------------------------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def absolute(x):
    x %= P
    return P - x if x & 1 else x


def root(u, v):
    """Whether u/v is a square, and a root of it or of i*u/v that is not negative."""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    right, flipped, flipped_i = check == u % P, check == -u % P, check == -u * SQRT_M1 % P
    if flipped or flipped_i:
        r = r * SQRT_M1 % P
    return right or flipped, absolute(r)


INV_SQRT_A_MINUS_D = root(1, (-1 - D) % P)[1]


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * D, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def negative(p):
    return (-p[0] % P, p[1], p[2], -p[3] % P)


def times(k, p):
    total = (0, 1, 1, 0)
    while k:
        total = add(total, p) if k & 1 else total
        p, k = add(p, p), k >> 1
    return total


def base_point():
    y = 4 * pow(5, -1, P) % P
    _, x = root((y * y - 1) % P, (D * y * y + 1) % P)
    return (x, y, 1, x * y % P)


def encode(p):
    x, y, z, t = p
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    _, invsqrt = root(1, u1 * u2 * u2 % P)
    den1, den2 = invsqrt * u1 % P, invsqrt * u2 % P
    z_inv = den1 * den2 * t % P
    if (t * z_inv % P) & 1:
        x, y, den = y * SQRT_M1 % P, x * SQRT_M1 % P, den1 * INV_SQRT_A_MINUS_D % P
    else:
        den = den2
    if (x * z_inv % P) & 1:
        y = -y % P
    return absolute(den * (z - y)).to_bytes(32, "little")


G = base_point()
assert encode(G).hex() == "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"

# --- POLYVAL (RFC 8452) ---------------------------------------------------------------------------

POLYNOMIAL = 1 << 128 | 1 << 127 | 1 << 126 | 1 << 121 | 1


def dot(a, b):
    product = 0
    for bit in range(128):
        product ^= (a << bit) if b >> bit & 1 else 0
    for _ in range(128):
        product = (product ^ (POLYNOMIAL if product & 1 else 0)) >> 1
    return product


def polyval(point, words):
    total = 0
    for word in words:
        total = dot(total ^ word, point)
    return total


def little(text):
    return int.from_bytes(bytes.fromhex(text), "little")


assert polyval(
    little("25629347589242761d31f826ba4b757b"),
    [little("4f4f95668c83dfb6401762bb2d01a262"), little("d1a24ddd2721d006bbe45f20d3c9f362")],
) == little("f7a3b47b846119fae5b7866cf5e5b77e")

# --- The protocol ---------------------------------------------------------------------------------

MODULI = {2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011, 8: 0b100011011}
BLOCK = 64


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def u64(n):
    return n.to_bytes(8, "little")


def u128(n):
    return n.to_bytes(16, "little")


def low(digest):
    return int.from_bytes(digest[:16], "little")


class Field:
    def __init__(self, bits):
        self.bits, self.size = bits, 1 << bits
        self.trees = -(-128 // bits)

    def product(self, a, b):
        total = 0
        for bit in range(self.bits):
            total ^= (a << bit) if b >> bit & 1 else 0
        for bit in reversed(range(self.bits, 2 * self.bits)):
            total ^= (MODULI[self.bits] << (bit - self.bits)) if total >> bit & 1 else 0
        return total


class Tape:
    """Randomness that both programs read."""

    def __init__(self, name, length):
        self.bytes, self.at = hashlib.shake_128(name.encode()).digest(length), 0

    def read(self, count):
        self.at += count
        assert self.at <= len(self.bytes)
        return self.bytes[self.at - count : self.at]


class Transcript:
    def __init__(self, field, context):
        self.text = b"heda transfer: session" + bytes([field.bits]) + u64(len(context)) + context

    def add(self, *messages):
        self.text += b"".join(messages)

    def digest(self, purpose, more=b""):
        return sha(sha(self.text + more), purpose.encode())


def children(cipher, node):
    return [cipher.encrypt(node) ^ node, cipher.encrypt(node ^ 1) ^ node ^ 1]


def grow(label, seed, height):
    """Leaves, and for each level the sums of left and right nodes."""
    cipher, nodes, sums = Aes(u128(label)), [seed], []
    for _ in range(height):
        nodes = [child for node in nodes for child in children(cipher, node)]
        total = [0, 0]
        for place, node in enumerate(nodes):
            total[place & 1] ^= node
        sums.append(total)
    return nodes, sums


class Session:
    """Both sides at once; what only one side knows is kept apart by names."""

    def __init__(self, bits, name):
        field = self.field = Field(bits)
        self.context = name.encode()
        self.chooser = Tape(name + " chooser", 64 + 16 * field.trees)
        self.sender = Tape(name + " sender", field.trees + 64 * field.trees * bits)
        transcript = self.transcript = Transcript(field, self.context)
        # Steps 1 and 2
        a = int.from_bytes(self.chooser.read(64), "little") % ORDER
        point = times(a, G)
        self.first = encode(point)
        self.delta = [b % field.size for b in self.sender.read(field.trees)]
        path = [part >> bit & 1 for part in self.delta for bit in reversed(range(bits))]
        points, keys = [], []
        for number, bit in enumerate(path):
            x = int.from_bytes(self.sender.read(64), "little") % ORDER
            sent = times(x, G)
            sent = add(sent, point) if bit else sent
            points.append(sent)
            keys.append(self.base_key(number, sent, times(x, point)))
        self.second = b"".join(map(encode, points))
        transcript.add(self.first, self.second)
        # Steps 3 and 4
        first_label = low(transcript.digest("setup trees"))
        offers, sums, commitments, self.streams = b"", b"", b"", []
        for tree in range(field.trees):
            label = first_label ^ tree
            leaves, levels = grow(label, int.from_bytes(self.chooser.read(16), "little"), bits)
            for level, (left, right) in enumerate(levels):
                number = tree * bits + level
                sent = points[number]
                zero = self.base_key(number, sent, times(a, sent))
                one = self.base_key(number, sent, times(a, add(sent, negative(point))))
                assert keys[number] == [zero, one][path[number]]
                offers += u128(right ^ zero) + u128(left ^ one)
            facts = [u128(label) + bytes([x]) + u128(leaf) for x, leaf in enumerate(leaves)]
            committed = [sha(b"heda transfer: leaf commitment", fact) for fact in facts]
            commitments += b"".join(committed)
            total = 0
            for commitment in committed:
                total ^= int.from_bytes(commitment, "little")
            sums += total.to_bytes(32, "little")
            keys_of_tree = [low(sha(b"heda transfer: leaf stream", fact)) for fact in facts]
            self.streams.append([Aes(u128(key)) for key in keys_of_tree])
        self.third = offers + sums + sha(b"heda transfer: commitments", commitments)
        transcript.add(self.third)
        self.offset = low(transcript.digest("keys of rows"))
        self.next_row = self.position = 0

    def base_key(self, number, sent, shared):
        parts = (u64(number), self.first, encode(sent), encode(shared))
        return low(sha(b"heda transfer: base key", *parts))

    def request(self, planes, rows):
        """Steps 6 to 10 for fewer rows than a block has: the request, u and v by rows."""
        field, bits = self.field, self.field.bits
        words = -(-rows // 128)
        assert words < BLOCK
        mask = (1 << 8 * -(-rows // 8)) - 1
        # Planes as whole numbers: bit n of a plane is row n; masking rows are kept apart.
        us, vs = [], []
        for tree, ciphers in enumerate(self.streams):
            streams = []
            for cipher in ciphers:
                stream = []
                for plane in range(planes):
                    first = self.position + plane * BLOCK
                    counters = [first + word | tree << 64 for word in range(words + 1)]
                    blocks = [cipher.encrypt(counter) for counter in counters]
                    value = sum(block << 128 * n for n, block in enumerate(blocks[:words])) & mask
                    stream.append(value | blocks[words] << 128 * words)
                streams.append(stream)
            u, v = [0] * planes, [0] * bits
            for x, stream in enumerate(streams):
                for plane, value in enumerate(stream):
                    u[plane] ^= value
                    weight = field.product(x, 1 << plane) if planes > 1 else x
                    for bit in range(bits):
                        v[bit] ^= value if weight >> bit & 1 else 0
            us.append(u)
            vs.append(v)
        column = -(-rows // 8)

        def sent(value):
            return (value & mask).to_bytes(column, "little") + u128(value >> 128 * words)

        columns = b"".join(sent(a ^ b) for u in us[1:] for a, b in zip(u, us[0]))
        more = u64(planes) + u64(rows) + u64(self.next_row)
        before = self.transcript.digest("request", more)
        challenge = sha(b"heda transfer: challenge", before, sha(columns))
        point = low(sha(b"heda transfer: point", challenge, u64(0)))

        def image(value):
            parts = [value >> 128 * n & (1 << 128) - 1 for n in range(words + 1)]
            return polyval(point, parts[:words]) ^ parts[words]

        u_image = b"".join(u128(image(plane)) for plane in us[0])
        v_image = b"".join(u128(image(plane)) for v in vs for plane in v)
        seal = sha(b"heda transfer: answer", challenge, v_image)
        request = u64(self.next_row) + columns + u_image + seal
        self.transcript.add(challenge, u_image, seal)
        first = self.next_row
        self.next_row += rows
        self.position += planes * BLOCK

        def element(planes_of, row):
            return sum((plane >> row & 1) << n for n, plane in enumerate(planes_of))

        choices = [element(us[0], row) for row in range(rows)]
        v_rows = [[element(v, row) for v in vs] for row in range(rows)]
        return request, first, choices, v_rows

    def row(self, parts):
        return sum(part << n * self.field.bits for n, part in enumerate(parts)) & (1 << 128) - 1

    def hash(self, number, value):
        return Aes(u128(self.offset ^ number)).encrypt(value) ^ value

    def sender_rows(self, v_rows, choices, y):
        """The sender's row of y: w - y*Delta, from w = v + u*Delta."""
        product = self.field.product
        for v, u in zip(v_rows, choices):
            w = [a ^ product(u, d) for a, d in zip(v, self.delta)]
            yield self.row([a ^ product(y, d) for a, d in zip(w, self.delta)])


def packed(values, bits):
    total = sum(value << n * bits for n, value in enumerate(values))
    return total.to_bytes(-(-len(values) * bits // 8), "little")


def bits_case(session, rows, pad_bytes):
    request, first, choices, v_rows = session.request(1, rows)
    wanted = [(n * n // 3) & 1 for n in range(rows)]
    errors = [w ^ u for w, u in zip(wanted, choices)]
    pads = [[], []]
    for value in (0, 1):
        for n, v in enumerate(v_rows):
            row = next(session.sender_rows([v], [choices[n]], value ^ errors[n]))
            words = [session.hash(first + n, row ^ t) for t in range(-(-pad_bytes // 16))]
            pads[value].append(b"".join(map(u128, words))[:pad_bytes])
            if value == wanted[n]:
                assert row == session.row(v)
    return {
        "kind": "bits",
        "rows": rows,
        "pad_bytes": pad_bytes,
        "request": sha(request).hex(),
        "wanted": wanted,
        "corrections": packed(errors, 1).hex(),
        "zero": sha(*pads[0]).hex(),
        "one": sha(*pads[1]).hex(),
        "chosen": [pads[w][n].hex() for n, w in enumerate(wanted)],
    }


def indices_case(session, rows, index_bits, entry_bits):
    field = session.field
    request, first, choices, v_rows = session.request(field.bits, rows)
    wanted = [(5 * n + n * n // 7) % (1 << index_bits) for n in range(rows)]
    errors = [w ^ u for w, u in zip(wanted, choices)]
    tables, chosen = b"", []
    for n, v in enumerate(v_rows):
        for entry in range(1 << index_bits):
            row = next(session.sender_rows([v], [choices[n]], entry ^ errors[n]))
            pad = session.hash(first + n, row) & (1 << entry_bits) - 1
            tables += pad.to_bytes(2, "little")
            if entry == wanted[n]:
                assert row == session.row(v)
                chosen.append(pad)
    return {
        "kind": "indices",
        "rows": rows,
        "index_bits": index_bits,
        "entry_bits": entry_bits,
        "request": sha(request).hex(),
        "wanted": wanted,
        "corrections": packed(errors, field.bits).hex(),
        "tables": sha(tables).hex(),
        "chosen": chosen,
    }


def positive(bits, batches):
    session = Session(bits, f"transfer vectors {bits}")
    cases = []
    for kind, *parameters in batches:
        cases.append((bits_case if kind == "bits" else indices_case)(session, *parameters))
    return {
        "field_bits": bits,
        "context": session.context.hex(),
        "chooser": session.chooser.bytes.hex(),
        "sender": session.sender.bytes.hex(),
        "first": session.first.hex(),
        "second": sha(session.second).hex(),
        "third": sha(session.third).hex(),
        "batches": cases,
    }


def tree(height, label, seed):
    leaves, sums = grow(label, seed, height)
    return {
        "height": height,
        "label": u128(label).hex(),
        "seed": u128(seed).hex(),
        "leaves": [u128(leaf).hex() for leaf in leaves],
        "sums": [[u128(side).hex() for side in level] for level in sums],
    }


def main():
    sessions = [
        positive(2, [("bits", 20, 49), ("indices", 133, 2, 16), ("bits", 1, 1)]),
        positive(3, [("indices", 9, 2, 7), ("bits", 130, 16)]),
        positive(5, [("indices", 17, 5, 4)]),
        positive(6, [("bits", 11, 16), ("indices", 8, 6, 1), ("indices", 5, 4, 12)]),
        positive(7, [("bits", 3, 20)]),
        positive(8, [("bits", 5, 33), ("indices", 3, 8, 9)]),
    ]
    # What the sender, or the chooser for the second message, must say to messages of the session
    # over F_64 in which one byte was changed, or which were cut.
    third = 32 * (132 + 22 + 1)
    negative_cases = [
        {"message": "first", "at": 31, "xor": 128, "error": "NotAPoint"},
        {"message": "first", "fill": 0, "error": "IdentityPoint"},
        {"message": "first", "fill": 255, "error": "NotAPoint"},
        {"message": "first", "length": 31, "error": "WrongLength"},
        {"message": "second", "at": 32 * 77 + 31, "xor": 128, "error": "NotAPoint"},
        {"message": "second", "fill": 0, "error": "IdentityPoint"},
        {"message": "second", "length": 4223, "error": "WrongLength"},
        {"message": "third", "at": 32 * 132, "xor": 1, "error": "InconsistentTrees"},
        {"message": "third", "at": third - 1, "xor": 64, "error": "InconsistentTrees"},
        {"message": "third", "length": third + 1, "error": "WrongLength"},
        {"message": "request", "at": 0, "xor": 1, "error": "OutOfStep"},
        {"message": "request", "at": 8, "xor": 1, "error": "InconsistentRequest"},
        {"message": "request", "at": 8 + 21 * 18 + 3, "xor": 2, "error": "InconsistentRequest"},
        {"message": "request", "at": 8 + 21 * 18 + 16 + 31, "xor": 2, "error": "InconsistentRequest"},
        {"message": "request", "length": 8 + 21 * 18 + 16 + 31, "error": "WrongLength"},
        {"message": "corrections", "at": 1, "xor": 8, "error": "Padding"},
        {"message": "corrections", "length": 3, "error": "WrongLength"},
    ]
    vectors = {
        "trees": [tree(1, 7, 9), tree(5, 1 << 127 | 3, 12345), tree(8, 99, (1 << 128) - 1)],
        "sessions": sessions,
        "negative": negative_cases,
    }
    print(json.dumps(vectors, indent=1))


main()
