"""Colours of charts: neighbours can be told apart in greyscale and with every colour vision.

The simulation multiplies linear RGB by the matrices of Machado, Oliveira and Fernandes, "A
Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE Transactions on
Visualization and Computer Graphics 15 (6), 2009, for complete deficiencies (severity 1.0).
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from survey.results.charts import SCALE_COLORS
from survey.results.estimates.scale_bar import MAX_POINTS, shades
from tests.conftest import ROOT

DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}

MIN_DIFFERENCE = 8.0
"""Least difference in L* of neighbours; about 2 is the least that people notice side by side."""

CSS = (ROOT / "survey/static/research.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--scale-([a-z0-9-]+): (#[0-9a-f]{6});", part))
    for part in CSS.split("@media (prefers-color-scheme: dark)", 1)
)


def lightness(color: str, deficiency: str) -> float:
    """Return CIE L* of a colour, as it looks with a deficiency."""
    srgb = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(DEFICIENCIES[deficiency] @ linear, 0, 1)
    y = float(seen @ (0.2126, 0.7152, 0.0722))
    return 116 * y ** (1 / 3) - 16 if y > (6 / 29) ** 3 else y * (29 / 3) ** 3


def test_lightness_is_that_of_the_standard():
    assert lightness("#ffffff", "none") == pytest.approx(100)
    assert lightness("#777777", "none") == pytest.approx(50.03, abs=0.01)
    assert lightness("#ff0000", "none") == pytest.approx(53.24, abs=0.01)
    # Red is dark to people without cones for long waves, and grey stays what it is.
    assert lightness("#ff0000", "protanopia") < 45 < lightness("#ff0000", "tritanopia")
    for deficiency in DEFICIENCIES:
        assert lightness("#777777", deficiency) == pytest.approx(50.03, abs=0.1)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_neighbours_in_the_bar_of_a_scale_differ_in_lightness(colors):
    for n, deficiency in itertools.product(range(2, MAX_POINTS + 1), DEFICIENCIES):
        names = shades(n)
        assert len(set(names)) == n
        for one, other in itertools.pairwise(names):
            # The line in the middle of the scale separates these two.
            if (one[:3], other[:3]) == ("low", "hig"):
                continue
            ends = [lightness(colors[name], deficiency) for name in (one, other)]
            assert abs(ends[0] - ends[1]) >= MIN_DIFFERENCE, (n, deficiency, one, other)


def test_files_have_the_light_colours_of_the_stylesheet():
    assert list(LIGHT) == list(DARK) == list(SCALE_COLORS)
    assert LIGHT == SCALE_COLORS
