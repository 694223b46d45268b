"""Records of TensorBoard's event files, made without TensorBoard, for programs that tests start."""
import struct
import time

TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = (_byte >> 1) ^ 0x82F63B78 if _byte & 1 else _byte >> 1
    TABLE.append(_byte)


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def event(step, tag, value):
    """A framed event with one scalar, a float32."""
    value = b"\x0a" + varint(len(tag)) + tag.encode() + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + varint(len(value)) + value
    data = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + varint(step) + b"\x2a" + varint(len(summary)) + summary
    length = struct.pack("<Q", len(data))
    return length + masked_crc32c(length) + data + masked_crc32c(data)


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]
