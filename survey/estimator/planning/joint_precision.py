"""Precision of a joint response against separate reports of the same total privacy loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from survey.errors import CountsError
from survey.estimator.core.arguments import checked_arguments, checked_level
from survey.estimator.core.debiasing import axis
from survey.estimator.core.intervals import normal_quantile
from survey.mechanism import SubsetSelection
from survey.mechanism.channel import Floats
from survey.mechanism.composition import total_ratio
from survey.mechanism.joint_response import joint_response, marginal_response


@dataclass(frozen=True, eq=False)
class JointPrecision:
    """Margins of error z SE at equal shares of all combinations, by each way of randomizing.

    shares_apart  of a share of each question, randomized separately; shape (questions,)
    shares_joint  of the same share if all questions are randomized jointly
    cell_apart    of a cell of their cross-tab
    cell_joint
    """

    shares_apart: Floats
    shares_joint: Floats
    cell_apart: float
    cell_joint: float

    @property
    def narrows_shares(self) -> bool:
        """Whether the joint response narrows the shares of every question."""
        return bool((self.shares_joint < self.shares_apart).all())

    @property
    def narrows_cells(self) -> bool:
        """Whether the joint response narrows the cells of the cross-tab."""
        return self.cell_joint < self.cell_apart


@checked_arguments
def joint_precision(
    channels: Sequence[SubsetSelection], n: int, *, level: float = 0.95
) -> JointPrecision:
    """Compare separate reports by these channels with a joint response of the same total epsilon.

    `channels` are generalized randomized responses (d = 1) of two or more questions, `n` the number
    of reports. At equal shares, with second moments m_i = E[g^2] of a cell's factors,
        n Var(share) = lambda (1 - lambda)/(p - q)^2,  n Var(cell) = m_1 m_2 ... - 1/K^2,
    and a cell of the joint response is a share of K options (`crosstab`).

    Raises CountsError unless n is above 0, ChannelError for channels that cannot be joined.

    >>> from survey.mechanism import from_epsilon
    >>> yes_no = joint_precision([from_epsilon(2, "0.8")] * 2, 2_000)
    >>> yes_no.shares_apart.round(4).tolist(), yes_no.shares_joint.round(4).tolist()
    ([0.0577, 0.0577], [0.0441, 0.0441])
    >>> round(yes_no.cell_apart, 4), round(yes_no.cell_joint, 4)
    (0.0862, 0.0382)
    """
    if n <= 0:
        raise CountsError(f"n = {n} must be above 0")
    z = normal_quantile(checked_level(level)) / math.sqrt(n)
    sizes = [channel.k for channel in channels]
    joint = joint_response(sizes, total_ratio(channel.ratio for channel in channels))
    moments = [float(np.mean(axis(channel).by_truth[0])) for channel in channels]
    return JointPrecision(
        shares_apart=np.array([z * _deviation(channel) for channel in channels]),
        shares_joint=np.array([z * _deviation(marginal_response(joint, k)) for k in sizes]),
        cell_apart=z * math.sqrt(math.prod(moments) - 1 / joint.k**2),
        cell_joint=z * _deviation(joint),
    )


def _deviation(channel: SubsetSelection) -> float:
    """Return the standard error of one report, sqrt(lambda (1-lambda))/(p-q) at lambda = 1/k."""
    return math.sqrt((channel.k - 1) / channel.k**2) / (channel.p - channel.q)
