"""Sets of options as bit strings of constant length, the form they have on the wire."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from survey.errors import ChannelError


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
