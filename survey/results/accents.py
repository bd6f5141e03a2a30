"""Accent colors of teams: which ones are readable, and their variants for dark pages.

Contrast is the ratio that WCAG 2.2 defines, from 1 (equal) to 21 (black on white).
"""

from __future__ import annotations

import colorsys
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from survey.errors import DesignError

MINIMUM_CONTRAST = 4.5
"""Minimum contrast of an accent with white (WCAG 2.2, level AA)."""

TEXT_CONTRAST = 7.0
"""Contrast of links and buttons on pages (WCAG 2.2, level AAA)."""

WHITE = "#ffffff"

LIGHT_GROUND, DARK_GROUND = "#fff4d6", "#3a2f10"
"""The backgrounds of cautions: of all backgrounds of links, they contrast least with an accent."""

DARK_PAGE = "#12171a"
"""The background of pages in dark mode."""

HEX = re.compile(r"#?([0-9A-Fa-f]{6})")


class Accent(NamedTuple):
    """The variants of an accent for pages in light and in dark mode."""

    light: str
    dark: str


def _channels(color: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(color[1:])
    return red, green, blue


def _hex(*channels: int) -> str:
    return f"#{bytes(channels).hex()}"


def _from_hls(hue: float, lightness: float, saturation: float) -> str:
    return _hex(*(round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, saturation)))


def luminance(color: str) -> float:
    """Return the relative luminance of an sRGB color, from 0 for black to 1 for white.

    >>> luminance("#000000"), luminance("#ffffff")
    (0.0, 1.0)
    """
    # L = 0.2126 R + 0.7152 G + 0.0722 B of the linear channels (WCAG 2.2, "relative luminance").
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in _channels(color))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """Return the contrast ratio of two colors.

    >>> contrast("#ffffff", "#000000"), round(contrast("#767676", "#ffffff"), 2)
    (21.0, 4.54)
    """
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def mix(color: str, other: str, share: float) -> str:
    """Mix a share of another color into a color.

    >>> mix("#000000", "#ffffff", 0.2)
    '#333333'
    """
    pairs = zip(_channels(color), _channels(other), strict=True)
    return _hex(*(round(a + share * (b - a)) for a, b in pairs))


def parse_accent(text: str) -> str:
    """Return an accent as `#rrggbb`; raises DesignError if white text on it is hard to read."""
    match = HEX.fullmatch(text.strip())
    if match is None:
        raise DesignError(
            f"Enter a color as six hexadecimal digits, such as #0a5069 (found {text.strip()[:20]})"
        )
    color = f"#{match[1].lower()}"
    ratio = contrast(color, WHITE)
    if ratio < MINIMUM_CONTRAST:
        darker = _readable(color, 0, WHITE, MINIMUM_CONTRAST)
        # The ratio is rounded down, so that it never looks sufficient.
        raise DesignError(
            f"White text on {color} has a contrast of {math.floor(100 * ratio) / 100:.2f}:1; "
            f"at least {MINIMUM_CONTRAST}:1 is needed. The nearest readable shade is {darker}"
        )
    return color


def accent_variants(color: str) -> Accent:
    """Return the shades of an accent that are readable as text on every background of a page."""
    return Accent(
        _readable(color, 0, LIGHT_GROUND, TEXT_CONTRAST),
        _readable(color, 1, DARK_GROUND, TEXT_CONTRAST),
    )


def _readable(color: str, extreme: int, ground: str, minimum: float) -> str:
    """Return the shade of a color that is readable on a background and nearest to the color.

    Shades have the hue and saturation of the color and a lightness up to `extreme`: 1 is white and
    0 is black.
    """
    hue, lightness, saturation = colorsys.rgb_to_hls(*(part / 255 for part in _channels(color)))
    levels = (lightness + (extreme - lightness) * step / 100 for step in range(1, 101))
    shades = (_from_hls(hue, level, saturation) for level in levels)
    return next(shade for shade in (color, *shades) if contrast(shade, ground) >= minimum)


HUES: Mapping[str, int] = {
    "Red": 0,
    "Orange": 24,
    "Green": 140,
    "Turquoise": 180,
    "Blue": 214,
    "Violet": 262,
    "Pink": 325,
}
"""Hues of the proposed accents in degrees."""


def _proposed_accent(hue: int) -> str:
    """Return the lightest saturated color of a hue that light pages use unchanged."""
    lightness = range(60, 0, -1)
    colors = (_from_hls(hue / 360, step / 100, 0.7) for step in lightness)
    return next(color for color in colors if contrast(color, LIGHT_GROUND) >= TEXT_CONTRAST)


PROPOSED_ACCENTS: Mapping[str, str] = {name: _proposed_accent(hue) for name, hue in HUES.items()}
"""The accents that a form proposes, by name."""


def accent_stylesheet(color: str) -> str:
    """Return the rules that give pages and reports a team's accent.

    Bars of leading answers mix the accent with the background.
    """
    light, dark = accent_variants(color)
    return (
        f":root {{ --accent: {light}; --leading: {leading_color(color)}; }}\n"
        "@media screen and (prefers-color-scheme: dark) {\n"
        f"  :root {{ --accent: {dark}; --leading: {mix(dark, DARK_PAGE, LEADING_SHARE)}; }}\n"
        "}\n"
    )


LEADING_SHARE = 0.45
"""Share of the background in the color of a leading answer's bar."""


def leading_color(color: str) -> str:
    """Return the color of a leading answer's bar on paper."""
    return mix(color, WHITE, LEADING_SHARE)


def with_accent(chart: dict[str, Any], color: str) -> dict[str, Any]:
    """Return a chart whose marks have a team's accent; "" changes nothing."""
    if not color:
        return chart
    marks = {"mark": {"color": color}, "rule": {"color": color}}
    return {**chart, "config": {**chart["config"], **marks}}
