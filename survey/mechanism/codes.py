"""Codes of reports as bytes and back to counts: integers of one or two bytes, bit strings."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.arrays import Codes, Integers

BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)
"""The eight bits of each value of a byte, shape (256, 8)."""


def index_bytes(codes: int) -> int:
    """Bytes that one of so many codes takes: one for up to 256, else two."""
    return 1 if codes <= 256 else 2


def encode_index(code: object, codes: int) -> bytes:
    """One of the integers from 0 to codes - 1 as big-endian bytes; else ChannelError.

    >>> encode_index(300, 1000)
    b'\\x01,'
    """
    # type() and not isinstance(): JSON's true is an int to Python.
    if type(code) is not int or not 0 <= code < codes:
        raise ChannelError(f"must be an integer from 0 to {codes - 1}")
    return code.to_bytes(index_bytes(codes), "big")


def count_indices(stored: Codes, codes: int) -> Integers:
    """How often each integer occurs, shape (codes,).

    >>> count_indices(np.array([[1], [0], [1]], dtype=np.uint8), 3).tolist()
    [1, 2, 0]
    """
    values: NDArray[np.uint16] = stored[:, 0].astype(np.uint16)
    if index_bytes(codes) == 2:
        values = np.asarray((values << 8) | stored[:, 1], dtype=np.uint16)
    return np.bincount(values, minlength=codes).astype(np.int64)


def encode_bits(code: object, bits: int) -> bytes:
    """A bit string in base64url as bytes; else ChannelError."""
    if not isinstance(code, str):
        raise ChannelError(f"must be {bits} bits in base64url without padding")
    return unpack_bits(code, bits)


def count_bits(stored: Codes, bits: int) -> Integers:
    """How often each bit is 1, shape (bits,).

    Bytes are tallied by value first: of each the bits are known.

    >>> count_bits(np.array([[128], [192]], dtype=np.uint8), 3).tolist()
    [2, 1, 0]
    """
    tallies = np.array([np.bincount(column, minlength=256) for column in stored.T], dtype=np.int64)
    return np.asarray((tallies @ BITS_OF_BYTE).ravel()[:bits])


def longest_bits(bits: int) -> str:
    """A code of that many bits; all of them have one length."""
    return "A" * -(-packed_bytes(bits) * 4 // 3)


def packed_bytes(k: int) -> int:
    """Bytes that k bits take."""
    return (k + 7) // 8


def pack_bits(members: Iterable[int], k: int) -> str:
    """The set as k bits, option 0 first, in base64url without padding.

    >>> pack_bits([0, 9], 10)
    'gEA'
    """
    octets = bytearray(packed_bytes(k))
    for option in members:
        octets[option >> 3] |= 128 >> (option & 7)
    return base64.urlsafe_b64encode(bytes(octets)).decode("ascii").rstrip("=")


def unpack_bits(text: str, k: int) -> bytes:
    """The bytes of a set of k options; one set has one spelling, others are refused.

    >>> unpack_bits("gEA", 10)
    b'\\x80@'
    """
    try:
        octets = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        octets = b""
    spare = 8 * len(octets) - k
    fits = len(octets) == packed_bytes(k) and not (spare and octets[-1] & ((1 << spare) - 1))
    if not fits or base64.urlsafe_b64encode(octets).decode("ascii").rstrip("=") != text:
        raise ChannelError(f"must be {k} bits in base64url without padding")
    return octets
