"""Mechanisms: exact integer channels that randomize answers on the device, and their design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from survey.errors import ChannelError
from survey.mechanism.bit_vector import BitVector
from survey.mechanism.channel import Channel, UniformBelow, secure_uniform_below
from survey.mechanism.half_space import HalfSpace
from survey.mechanism.randomized_response import (
    best,
    from_epsilon,
    from_keep_probability,
    from_ratio,
    grr,
)
from survey.mechanism.subset_selection import SubsetSelection
from survey.mechanism.weight_table import WeightTable, table_from_json

__all__ = [
    "AnyChannel",
    "BitVector",
    "Channel",
    "HalfSpace",
    "SubsetSelection",
    "UniformBelow",
    "WeightTable",
    "best",
    "channel_from_json",
    "from_epsilon",
    "from_keep_probability",
    "from_ratio",
    "grr",
    "secure_uniform_below",
]

AnyChannel = SubsetSelection | BitVector | HalfSpace | WeightTable
"""A channel of any kind."""

KINDS: Mapping[str, type[SubsetSelection | BitVector | HalfSpace]] = {
    channel.kind: channel for channel in (SubsetSelection, BitVector, HalfSpace)
}
"""Each kind that is described by integers; a weight table is described by a shape."""


def channel_from_json(form: Mapping[str, Any]) -> AnyChannel:
    """Build a channel from its JSON form in a definition.

    Raises ChannelError for an unknown kind, other parameters, or values that a channel refuses.

    >>> channel_from_json({"kind": "subset_selection", "k": 2, "d": 1, "T": 3, "L": 1}).ratio
    Fraction(3, 1)
    """
    kind = str(form.get("kind"))[:40] if isinstance(form, Mapping) else "none"
    if kind == "weight_table":
        return table_from_json(form)
    if kind not in KINDS:
        raise ChannelError(f"unknown kind of channel {kind!r}")
    names = KINDS[kind].parameters
    if set(form) != {"kind", *names}:
        raise ChannelError(f"a {kind} channel has kind, {', '.join(names)}, not {sorted(form)}")
    integers = {name: form[name] for name in names}
    if integers.get("sampled") == 0:
        raise ChannelError("sampled = 0 must be from 1 to m: a channel has one JSON form")
    return KINDS[kind](**integers)
