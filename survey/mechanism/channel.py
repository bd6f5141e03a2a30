"""Channels: P(report | truth) made of integers, so that what is promised is exactly what runs.

A channel that exists is valid: its constructor refuses everything else. The client runs the
same integers (`client_js/src/mechanism.js`); `tests/vectors` binds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from survey.errors import ChannelError
from survey.mechanism.arrays import AnyIntegers, Codes, Integers
from survey.mechanism.bit_vector import BitVector
from survey.mechanism.subset_selection import SubsetSelection
from survey.mechanism.weight_table import WeightTable, table_from_json
from survey.mechanism.weights import UniformBelow

AnyChannel = SubsetSelection | BitVector | WeightTable
"""The three kinds there are."""


class Channel(Protocol):
    """What every mechanism offers, whatever its truths and reports look like."""

    @property
    def kind(self) -> str: ...
    @property
    def ratio(self) -> Fraction: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def options(self) -> int: ...
    @property
    def truths(self) -> int: ...
    def perturb(self, truths: AnyIntegers, rng: np.random.Generator) -> AnyIntegers: ...
    def perturb_one(self, truth: Any, uniform_below: UniformBelow) -> int | str: ...
    @property
    def code_bytes(self) -> int: ...
    @property
    def longest_code(self) -> int | str: ...
    @property
    def counted(self) -> int: ...
    def encode(self, code: object) -> bytes: ...
    def count(self, codes: Codes) -> Integers: ...
    def to_json(self) -> dict[str, Any]: ...


PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "subset_selection": ("k", "d", "T", "L"),
    "bit_vector": ("m", "s", "alone", "sampled", "T", "L"),
}


def channel_from_json(form: Mapping[str, Any]) -> AnyChannel:
    """Build the channel that a definition carries.

    >>> channel_from_json({"kind": "subset_selection", "k": 2, "d": 1, "T": 3, "L": 1}).ratio
    Fraction(3, 1)
    """
    kind = str(form.get("kind"))[:40] if isinstance(form, Mapping) else "none"
    if kind == "weight_table":
        return table_from_json(form)
    if kind not in PARAMETERS:
        raise ChannelError(f"unknown kind of channel {kind!r}")
    names = PARAMETERS[kind]
    if set(form) != {"kind", *names}:
        raise ChannelError(f"a {kind} channel has kind, {', '.join(names)}, not {sorted(form)}")
    integers = {name: form[name] for name in names}
    if integers.get("sampled") == 0:
        raise ChannelError("sampled = 0 must be from 1 to m: a channel has one written form")
    return SubsetSelection(**integers) if kind == "subset_selection" else BitVector(**integers)
