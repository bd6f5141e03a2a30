"""Plan charts exist for every design and omit meaningless numbers."""

from __future__ import annotations

import numpy as np

from survey.estimator import simulated_grid, tradeoff
from survey.results.plan.chart import grid_specification, tradeoff_specification


def test_charts_omit_useless_margins_and_clip_extreme_estimates():
    specification = tradeoff_specification(tradeoff([0.01, 1, 10], [100, 1000]))
    lines = specification["layer"][0]["data"]["values"]
    assert max(row["margin"] for row in lines) <= 0.5
    grid = grid_specification(simulated_grid(np.random.default_rng(1)))
    points = grid["data"]["values"]
    assert {point["outside"] for point in points} >= {"no", "above"}
    assert all(-0.5 <= point["low"] <= point["high"] <= 1.5 for point in points)
