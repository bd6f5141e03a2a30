"""Codes of reports as text, as stored bytes, and as counts.

A code is either an integer (stored in one or two big-endian bytes) or a bit string of constant
length (base64url without padding in a report, plain bytes in the store, option 0 first).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.arrays import Codes, Integers

BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.int64)
"""The eight bits of each byte value, shape (256, 8)."""


def index_bytes(codes: int) -> int:
    """Return how many bytes store an integer code: one for up to 256 codes, otherwise two."""
    return 1 if codes <= 256 else 2


def packed_bytes(k: int) -> int:
    """Return how many bytes store k bits."""
    return (k + 7) // 8


def encode_index(code: object, codes: int) -> bytes:
    """Return an integer from 0 to `codes` - 1 as big-endian bytes.

    Raises ChannelError for anything else.

    >>> encode_index(300, 1000)
    b'\\x01,'
    """
    # type() and not isinstance(), because JSON's true is an int in Python.
    if type(code) is not int or not 0 <= code < codes:
        raise ChannelError(f"must be an integer from 0 to {codes - 1}")
    return code.to_bytes(index_bytes(codes), "big")


def count_indices(stored: Codes, codes: int) -> Integers:
    """Count how often each integer code occurs, shape (codes,).

    Raises ChannelError unless `stored` holds stored codes (see `check_stored`).

    >>> count_indices(np.array([[1], [0], [1]], dtype=np.uint8), 3).tolist()
    [1, 2, 0]
    """
    check_stored(stored, index_bytes(codes))
    values = stored[:, 0].astype(np.uint16)
    if index_bytes(codes) == 2:
        values = np.asarray((values << 8) | stored[:, 1], dtype=np.uint16)
    counts = np.bincount(values, minlength=codes).astype(np.int64)
    if len(counts) > codes:
        raise ChannelError(f"code {len(counts) - 1} must be an integer from 0 to {codes - 1}")
    return counts


def pack_bits(members: Iterable[int], k: int) -> str:
    """Return a set of options as k bits in base64url without padding.

    >>> pack_bits([0, 9], 10)
    'gEA'
    """
    octets = bytearray(packed_bytes(k))
    for option in members:
        octets[option >> 3] |= 128 >> (option & 7)
    return base64.urlsafe_b64encode(bytes(octets)).decode("ascii").rstrip("=")


def unpack_bits(text: str, k: int) -> bytes:
    """Return the bytes of a set of k options.

    Each set has exactly one spelling; ChannelError for any other text.

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


def encode_bits(code: object, bits: int) -> bytes:
    """Return a bit string in base64url as bytes; ChannelError for anything else."""
    if not isinstance(code, str):
        raise ChannelError(f"must be {bits} bits in base64url without padding")
    return unpack_bits(code, bits)


def count_bits(stored: Codes, bits: int) -> Integers:
    """Count how often each bit is 1, shape (bits,).

    Raises ChannelError unless `stored` holds stored codes (see `check_stored`).

    >>> count_bits(np.array([[128], [192]], dtype=np.uint8), 3).tolist()
    [2, 1, 0]
    """
    check_stored(stored, packed_bytes(bits))
    # Counting byte values first is faster: 256 values instead of n rows are expanded into bits.
    tallies = np.array([np.bincount(column, minlength=256) for column in stored.T], dtype=np.int64)
    counts = np.asarray((tallies @ BITS_OF_BYTE).ravel())
    if counts[bits:].any():
        raise ChannelError(
            f"a code of {bits} bits has a 1 after its last bit; pass the stored bytes of the "
            "reports, not one column per bit"
        )
    return counts[:bits]


def longest_bits(bits: int) -> str:
    """Return a code of the greatest length; all codes of `bits` bits have the same length."""
    return "A" * -(-packed_bytes(bits) * 4 // 3)


def check_stored(stored: Codes, code_bytes: int) -> None:
    """Raise ChannelError unless the array has dtype uint8 and shape (n, `code_bytes`).

    Rows of the microdata (one column per option, or one answer per row) have another shape or
    type; without this check their counts would be meaningless.
    """
    shape = np.shape(stored)
    dtype = getattr(stored, "dtype", type(stored).__name__)
    if not isinstance(stored, np.ndarray) or dtype != np.uint8 or shape[1:] != (code_bytes,):
        raise ChannelError(
            f"codes must be the stored bytes of the reports, an array of uint8 of shape "
            f"(n, {code_bytes}), as `encode` returns them (found {dtype} of shape {shape}); to "
            "count microdata, sum its columns of 0 and 1, or use numpy.bincount on its answers"
        )
