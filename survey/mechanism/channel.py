"""Channels: P(report | truth) made of integers, so that the stated guarantee is exactly what runs.

Every existing channel is valid: constructors raise ChannelError for anything else. The client
runs the same integers (`client_js/src/mechanism.js`); `tests/vectors` compares the two.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from survey.errors import ChannelError
from survey.mechanism.composition import log_rounded_up
from survey.mechanism.labelled_arrays import ordinary_rows, reject_masked

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

AnyIntegers = NDArray[np.integer[Any]]
"""Integers of any width, signed or unsigned."""

Codes = NDArray[np.uint8]
"""The stored codes of many reports, shape (n, bytes per code)."""

UniformBelow = Callable[[int], int]
"""`uniform_below(n)` returns an integer uniform in [0, n), n <= 2^32."""

WORD_TOTAL = 2**32
"""Maximum total weight: one 32-bit word of a device's generator must decide every draw."""

CHUNK = 65_536
"""Number of values to count at once, so that they stay in the processor's cache."""

MAX_OPTIONS = 10_000
MAX_BITS = 1_000
MAX_GRID = 1_000
"""Maximum number of points on a grid for numbers and dates."""

LARGEST_PRINTED = 10**100
"""Python refuses to print integers of thousands of digits, so error messages omit larger ones."""


class Channel(ABC):
    """The interface of every mechanism, whatever its truths and reports look like."""

    kind: ClassVar[str]
    """The name of this kind of channel in a definition."""

    parameters: ClassVar[tuple[str, ...]]
    """The names of its integers in a definition."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """Return e^epsilon, exactly: the maximum factor by which one report changes the odds."""

    @property
    @abstractmethod
    def options(self) -> int:
        """Return how many shares the reports estimate."""

    @property
    def truths(self) -> int:
        """Return the number of different true answers."""
        return self.options

    @property
    def truth_probability(self) -> float | None:
        """Return P(report = truth), or None where it differs between truths."""
        return None

    @property
    def is_sampled(self) -> bool:
        """Return whether a report covers only some of the options and names them."""
        return False

    @property
    def report_bits(self) -> int:
        """Return the number of bits of a report, or 0 if a report is one integer."""
        return 0

    @cached_property
    def counted(self) -> int:
        """Return the length of the vector of counts: the number of bits or of different codes."""
        return self.report_bits or self.options

    @property
    def code_bytes(self) -> int:
        """Return the number of bytes of a stored code."""
        return packed_bytes(self.counted) if self.report_bits else index_bytes(self.counted)

    @property
    def longest_code(self) -> int | str:
        """Return a code that takes the most characters in a report."""
        if self.report_bits:
            return "A" * -(-self.code_bytes * 4 // 3)
        return self.counted - 1

    @cached_property
    def epsilon(self) -> float:
        """ln of `ratio`, rounded up to the next float, so that it never understates the loss."""
        return log_rounded_up(self.ratio)

    @abstractmethod
    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> AnyIntegers:
        """Randomize many truths at once, for simulation; devices run `perturb_one`."""

    @abstractmethod
    def perturb_one(self, truth: Any, uniform_below: UniformBelow) -> int | str:
        """Randomize one truth as the client does, draw by draw, and return the code."""

    def encode(self, code: object) -> bytes:
        """Return the stored bytes of a code; ChannelError if it is not one of this channel's."""
        if self.report_bits:
            return encode_bits(code, self.report_bits)
        return encode_index(code, self.counted)

    def count(self, codes: Codes) -> Integers:
        """Count how often each code occurs, or how often each bit is 1, shape (counted,).

        `codes` has dtype uint8 and shape (n, code_bytes); ChannelError for any other array, such
        as rows of microdata.
        """
        count = count_bits if self.report_bits else count_indices
        return count(codes, self.counted)

    def count_segments(self, codes: Codes, sizes: Sequence[int]) -> Integers:
        """Count the codes of each of several consecutive segments, shape (segments, counted).

        Many small segments are counted together, because the checks of `count` take longer than
        counting 25 codes. Raises ChannelError for the same codes as `count`.
        """
        if len(sizes) == 1:
            return self.count(codes)[None]
        # Raise ChannelError for invalid codes.
        self.count(codes)
        segments = np.repeat(np.arange(len(sizes)), sizes)
        if self.report_bits:
            members = np.unpackbits(codes, axis=1, count=self.counted).astype(bool)
            rows, places = np.nonzero(members)
            segments = segments[rows]
        else:
            places = (
                np.ascontiguousarray(codes)
                .view(">u2" if self.code_bytes == 2 else np.uint8)
                .ravel()
            )
        table = np.bincount(segments * self.counted + places, minlength=len(sizes) * self.counted)
        return table.reshape(len(sizes), self.counted)

    def to_json(self) -> dict[str, Any]:
        """Return the form that a definition holds and the client runs: kind and integers only."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.parameters}}


class PureChannel(Channel):
    """A channel described by two numbers, p and q: a "pure protocol" (Wang et al. 2017).

    p is the probability that a report supports an option if it is the truth (or ticked), q if it
    is not. Both follow from the channel's integers.
    """

    @property
    @abstractmethod
    def exact_p(self) -> Fraction:
        """P(the report supports an option | the option is the truth, or ticked)."""

    @property
    @abstractmethod
    def exact_q(self) -> Fraction:
        """P(the report supports an option | the option is not the truth)."""

    @property
    def p(self) -> float:
        """`exact_p` as a float."""
        return float(self.exact_p)

    @property
    def q(self) -> float:
        """`exact_q` as a float."""
        return float(self.exact_q)

    @property
    def truth_probability(self) -> float | None:
        """P(the report supports the truth), which is `p`."""
        return self.p


class TwoWeightChannel(PureChannel):
    """A pure channel whose p and q follow from the weights T and L."""

    T: int
    L: int

    @property
    def weight_ratio(self) -> Fraction:
        """max(T/L, L/T)."""
        return max(Fraction(self.T, self.L), Fraction(self.L, self.T))

    def check_device_weights(self) -> None:
        """Raise ChannelError for weights with which a device must not run."""
        if self.T <= self.L:
            raise ChannelError(f"a device never runs a channel with T = {self.T} <= L = {self.L}")


def draw_subset(deck: list[int], size: int, uniform_below: UniformBelow) -> list[int]:
    """Return `size` different values of the deck by a partial Fisher-Yates shuffle."""
    for i in range(size):
        j = i + uniform_below(len(deck) - i)
        deck[i], deck[j] = deck[j], deck[i]
    return deck[:size]


def secure_uniform_below(n: int) -> int:
    """Draw uniformly from [0, n) with the operating system's secure generator."""
    return secrets.randbelow(n)


def check_integers(**values: object) -> None:
    """Raise ChannelError for any value that is not an `int`: devices never compute with floats."""
    for name, value in values.items():
        if type(value) is not int:
            raise ChannelError(f"{name} must be an integer, not {str(value)[:40]!r}")
        if abs(value) > LARGEST_PRINTED:
            raise ChannelError(f"{name} is far above 2^32; use smaller integers")


def check_grid(k: int) -> int:
    """Return the number of points of a grid; ChannelError unless it is from 2 to `MAX_GRID`."""
    if type(k) is not int or not 2 <= k <= MAX_GRID:
        nearest = min(max(k, 2), MAX_GRID) if type(k) is int else 2
        raise ChannelError(
            f"a grid of {str(k)[:40]} points: 2 to {MAX_GRID:,} are allowed; "
            f"the nearest is {nearest:,}"
        )
    return k


def check_truth(truth: object, truths: int) -> int:
    """Return a truth as an index from 0 to `truths` - 1; ChannelError for anything else."""
    # numpy's integers are valid indices; bools and floats are not.
    is_index = isinstance(truth, Integral) and not isinstance(truth, bool)
    index = int(truth) if is_index else -1  # type: ignore[call-overload]
    if not 0 <= index < truths:
        raise ChannelError(f"truth {str(truth)[:40]} is not an option index from 0 to {truths - 1}")
    return index


def check_truths(truths: NDArray[Any], limit: int) -> Integers:
    """Return truths as indices from 0 to `limit` - 1; ChannelError for anything else."""
    values = ordinary_rows(truths, "truths")
    if values.size and (values.dtype.kind not in "iu" or values.min() < 0 or values.max() >= limit):
        raise ChannelError(f"truths must be option indices from 0 to {limit - 1}")
    return values.astype(np.int64)


def check_two_weights(T: int, L: int, total: int) -> None:
    """Raise ChannelError for weights that give no privacy, are not invertible, or are too large."""
    if L < 1:
        raise ChannelError(f"L = {L} must be at least 1: a zero weight gives no privacy")
    if T < 1 or T == L:
        raise ChannelError(f"T = {T} must be positive and differ from L = {L}")
    check_total(total)


def check_total(total: int) -> None:
    """Raise ChannelError for a total weight above 2^32, which one word cannot decide."""
    if total > WORD_TOTAL:
        raise ChannelError(
            f"the weights add up to {total:,}, above 2^32; the nearest allowed total is "
            f"{WORD_TOTAL:,}"
        )


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
    octets = np.ascontiguousarray(stored).reshape(-1)
    counts = count_octets(octets, codes) if index_bytes(codes) == 1 else _count_words(octets, codes)
    if len(counts) > codes:
        raise ChannelError(f"code {len(counts) - 1} must be an integer from 0 to {codes - 1}")
    return counts


def count_octets(octets: AnyIntegers, codes: int) -> Integers:
    """Count how often each byte occurs in a contiguous array; longer than `codes` if one is larger.

    >>> count_octets(np.array([1, 0, 1, 3], dtype=np.uint8), 2).tolist()
    [1, 2, 0, 1]
    """
    # numpy converts each value to eight bytes before counting, so count two bytes as one value.
    n_pairs = len(octets) // 2 if len(octets) >= codes << 10 else 0
    rest = octets[2 * n_pairs :]
    counts = np.bincount(rest, minlength=256).astype(np.int64)
    if n_pairs:
        pairs = _count_chunks(octets[: 2 * n_pairs].view(np.uint16), codes << 8)
        if len(pairs) % 256:
            pairs = np.pad(pairs, (0, -len(pairs) % 256))
        table = pairs.reshape(-1, 256)
        counts += table.sum(axis=0)
        counts[: len(table)] += table.sum(axis=1)
    largest = np.flatnonzero(counts[codes:])
    return counts[: codes + (int(largest[-1]) + 1 if len(largest) else 0)]


def _count_words(octets: Codes, codes: int) -> Integers:
    """Count how often each big-endian value of two bytes occurs."""
    return _count_chunks(octets.view(">u2"), codes)


def _count_chunks(values: AnyIntegers, size: int) -> Integers:
    """Count values in parts that fit into the processor's cache."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(values), CHUNK):
        part = np.bincount(values[start : start + CHUNK], minlength=size)
        if len(part) > len(counts):
            counts = np.pad(counts, (0, len(part) - len(counts)))
        counts[: len(part)] += part
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


def check_stored(stored: Codes, code_bytes: int) -> None:
    """Raise ChannelError unless the array has dtype uint8 and shape (n, `code_bytes`).

    Rows of the microdata (one column per option, or one answer per row) have another shape or
    type; without this check their counts would be meaningless.
    """
    reject_masked(stored, "codes", ChannelError)
    shape = np.shape(stored)
    dtype = getattr(stored, "dtype", type(stored).__name__)
    if not isinstance(stored, np.ndarray) or dtype != np.uint8 or shape[1:] != (code_bytes,):
        raise ChannelError(
            f"codes must be the stored bytes of the reports, an array of uint8 of shape "
            f"(n, {code_bytes}), as `encode` returns them (found {dtype} of shape {shape}); to "
            "count microdata, sum its columns of 0 and 1, or use numpy.bincount on its answers"
        )
