"""Mechanisms: exact integer channels that randomize answers on the device, and their design."""

from survey.mechanism.bit_vector import BitVector
from survey.mechanism.channel import Channel, UniformBelow, secure_uniform_below
from survey.mechanism.design import best, from_epsilon, from_keep_probability, from_ratio, grr
from survey.mechanism.kinds import AnyChannel, channel_from_json
from survey.mechanism.subset_selection import SubsetSelection
from survey.mechanism.weight_table import WeightTable

__all__ = [
    "AnyChannel",
    "BitVector",
    "Channel",
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
