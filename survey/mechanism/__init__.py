"""What happens to an answer: exact integer channels and how to choose them."""

from survey.mechanism.channel import (
    Channel,
    SubsetSelection,
    UniformBelow,
    channel_from_json,
    secure_uniform_below,
)
from survey.mechanism.design import from_epsilon, from_keep_probability, from_ratio, grr

__all__ = [
    "Channel",
    "SubsetSelection",
    "UniformBelow",
    "channel_from_json",
    "from_epsilon",
    "from_keep_probability",
    "from_ratio",
    "grr",
    "secure_uniform_below",
]
