#!/usr/bin/env python3
"""A line with delay and a limited rate between two TUN devices, packet by packet, for kernels
without netem. Makes the devices, says "ready", and carries until it is killed.

    tools/delay-line.py DEVICE DEVICE DELAY_MS MBIT
"""

import collections
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
PACKETS = 20_000  # what may be under way in one direction; more is dropped


def device(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


class Direction:
    """Packets leave one after the other at the rate, and arrive after the delay."""

    def __init__(self, source, target, delay, rate):
        self.source, self.target = source, target
        self.delay, self.rate = delay, rate
        self.free = 0.0
        self.under_way = collections.deque()

    def take(self):
        while True:
            try:
                packet = os.read(self.source, 65_536)
            except BlockingIOError:
                return
            if len(self.under_way) < PACKETS:
                self.free = max(self.free, time.monotonic()) + len(packet) * 8 / self.rate
                self.under_way.append((self.free + self.delay, packet))

    def deliver(self):
        while self.under_way and self.under_way[0][0] <= time.monotonic():
            try:
                os.write(self.target, self.under_way.popleft()[1])
            except OSError:
                pass  # The device is not up yet: lost, as on any line.

    def next_due(self):
        return self.under_way[0][0] if self.under_way else float("inf")


def main():
    left, right = device(sys.argv[1]), device(sys.argv[2])
    delay, rate = float(sys.argv[3]) / 1e3, float(sys.argv[4]) * 1e6
    directions = [Direction(left, right, delay, rate), Direction(right, left, delay, rate)]
    print("ready", flush=True)
    while True:
        due = min(direction.next_due() for direction in directions)
        wait = None if due == float("inf") else max(0.0, due - time.monotonic())
        select.select([left, right], [], [], wait)
        for direction in directions:
            direction.take()
            direction.deliver()


main()
