"""Colors of charts: neighbors can be told apart in greyscale and with every color vision.

Colors with different meanings that touch differ in lightness. Where a chart has more meanings than
lightness can separate, there is a second cue: the sides of a scale are separated by the line in its
middle and by their order in the legend, direct and model-based estimates by open and filled dots,
predicted margins by labels at their lines.

The simulation multiplies linear RGB by the matrices of Machado, Oliveira and Fernandes, "A
Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE Transactions on
Visualization and Computer Graphics 15 (6), 2009, for complete deficiencies (severity 1.0).
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from survey.results.charts import PALETTES, SCALE_COLORS
from survey.results.estimates.scale_bar import MAX_POINTS, shades
from survey.results.plan.chart import SHADES
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

MIN_DIFFERENCE = 10.0
"""Least difference in L* of neighbors; about 2 is the least that people notice side by side."""

CSS = (ROOT / "survey/static/research.css").read_text()
LIGHT, DARK = (
    dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", part))
    for part in CSS.split("@media (prefers-color-scheme: dark)", 1)
)
SCHEMES = pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])


def scale_colors(colors: dict[str, str]) -> dict[str, str]:
    prefix = "scale-"
    return {
        name.removeprefix(prefix): color
        for name, color in colors.items()
        if name.startswith(prefix)
    }


def lightness(color: str, deficiency: str) -> float:
    """Return CIE L* of a color, as it looks with a deficiency."""
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


@SCHEMES
def test_neighbours_in_the_bar_of_a_scale_differ_in_lightness(colors):
    scale = scale_colors(colors)
    for n, deficiency in itertools.product(range(2, MAX_POINTS + 1), DEFICIENCIES):
        names = shades(n)
        assert len(set(names)) == n
        for one, other in itertools.pairwise(names):
            # The line in the middle of the scale separates these two.
            if (one[:3], other[:3]) == ("low", "hig"):
                continue
            ends = [lightness(scale[name], deficiency) for name in (one, other)]
            assert abs(ends[0] - ends[1]) >= MIN_DIFFERENCE, (n, deficiency, one, other)


def mixed(color: str, ground: str, opacity: float) -> str:
    """Return the color of a mark that is not opaque."""
    pairs = ((int(color[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(opacity * c + (1 - opacity) * g):02x}" for c, g in pairs)


def opacity_of(selector: str) -> float:
    """Return the opacity with which the stylesheet fills a mark."""
    return float(re.search(rf"^{re.escape(selector)} {{.*fill-opacity: ([\d.]+)", CSS, re.M)[1])


@SCHEMES
def test_marks_that_touch_differ_in_lightness(colors):
    ground, ink, accent, bar = (colors[name] for name in ("ground", "ink", "accent", "bar"))
    leading = mixed(accent, ground, opacity_of(".bars .leading .share"))
    band = mixed(accent, ground, opacity_of(".lines .band"))
    touching = {
        "a bar and the page": (bar, ground),
        "the leading bar and another": (leading, bar),
        "an interval and its bar": (ink, bar),
        "an interval and the leading bar": (ink, leading),
        "a true share and its bar": (colors["wrong"], bar),
        "a true share and the leading bar": (colors["wrong"], leading),
        "a true share and an interval": (colors["wrong"], ink),
        "a dot and the line of its interval": (accent, ink),
        "a band and the page": (band, ground),
        "a line and its band": (accent, band),
        "a value and the page": (ink, ground),
        "the cells of the largest and of no share": (colors["shade-8"], colors["shade-0"]),
        "a value and the darkest cell": (ink, colors["shade-8"]),
    }
    for deficiency, (meaning, (one, other)) in itertools.product(DEFICIENCIES, touching.items()):
        difference = abs(lightness(one, deficiency) - lightness(other, deficiency))
        assert difference >= MIN_DIFFERENCE, (deficiency, meaning, difference)


def test_lines_of_a_plan_differ_in_lightness():
    for deficiency, colors in itertools.product(DEFICIENCIES, SHADES.values()):
        for one, other in itertools.pairwise(colors):
            difference = abs(lightness(one, deficiency) - lightness(other, deficiency))
            assert difference >= MIN_DIFFERENCE, (deficiency, one, other, difference)


def test_files_have_the_light_colours_of_the_stylesheet():
    assert list(scale_colors(LIGHT)) == list(scale_colors(DARK)) == list(SCALE_COLORS)
    assert scale_colors(LIGHT) == SCALE_COLORS
    for scheme, colors in (("light", LIGHT), ("dark", DARK)):
        names = PALETTES[scheme]._fields
        assert PALETTES[scheme]._asdict() == {name: colors[name] for name in names}
