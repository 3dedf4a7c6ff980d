"""Captures for programs that read them: made from a seed, and cut in two."""

import random
import struct

HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def packet(chance, source, destination):
    """Return an Ethernet frame with IPv4 and TCP, UDP or ICMP; checksums are left out."""
    protocol = chance.choices([6, 17, 1], [70, 25, 5])[0]
    ports = [chance.randint(1024, 1060), chance.choice([22, 25, 53, 80, 443])]
    if chance.random() < 0.4:
        ports.reverse()
    if chance.random() < 0.05:
        ports[1] = chance.randint(1, 200)
    data = chance.choice([b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\n", b"\0\1\2\3"])
    if protocol == 6:
        flags = chance.choice([2, 2, 0x12, 0x10, 0x18, 0x18, 0x11, 4])
        window = chance.choice([5840, 65535, 8192, 29200])
        layer4 = struct.pack(">HHIIBBHHH", *ports, chance.getrandbits(32), 0, 0x50, flags, window, 0, 0) + data
    elif protocol == 17:
        layer4 = struct.pack(">HHHH", *ports, 8 + len(data), 0) + data
    else:
        layer4 = bytes(8) + data
    ttl = chance.choice([60, 64, 120, 128, 250])
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(layer4), 0, 0, ttl, protocol, 0, source, destination)
    return bytes(6) + source.to_bytes(4, "big") + b"\2\2\x08\0" + ip + layer4


def records(seed, count, hosts):
    """Return the records of a capture: packets between so many hosts, twenty a second."""
    chance = random.Random(seed)
    addresses = [chance.getrandbits(32) for _ in range(hosts)]
    when, made = 1_700_000_000.0, []
    for _ in range(count):
        when += chance.expovariate(20)
        frame = packet(chance, chance.choice(addresses), chance.choice(addresses))
        made.append(struct.pack("<IIII", int(when), int(when % 1 * 1e6), len(frame), len(frame)) + frame)
    return made


def read(path, most, wanted=lambda frame: True):
    """Return the first records of an Ethernet capture in pcap format whose frames are wanted."""
    found = []
    with open(path, "rb") as file:
        if file.read(24)[:4] != HEAD[:4]:
            raise ValueError(f"{path}: expected a pcap file with microseconds, in this machine's byte order")
        while len(found) < most and len(head := file.read(16)) == 16:
            frame = file.read(struct.unpack_from("<I", head, 8)[0])
            if wanted(frame):
                found.append(head + frame)
    return found


def write(path, records):
    path.write_bytes(HEAD + b"".join(records))
