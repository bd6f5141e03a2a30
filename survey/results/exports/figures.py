"""The charts of a question: as SVG for the results page, and as files to download."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from survey.errors import NotFoundError
from survey.results.charts import VEGA_LITE
from survey.results.estimates.chart import middle_svg, shares_svg, spread_svg
from survey.results.estimates.result import QuestionResult
from survey.store import PublishedSurvey

FORMATS: Mapping[str, str] = {
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}
"""File formats of a figure, with their media types; json is the Vega-Lite specification."""

PNG_SCALE = 3.0
TITLE_CHARACTERS = 62

TEST_SUBTITLE = "TEST: reports of a test run"


class PageCharts(NamedTuple):
    """A question's charts as SVG for the results page; each is empty if there is none."""

    shares: str = ""
    middle: str = ""
    spread: str = ""


def page_charts(result: QuestionResult) -> PageCharts:
    """Return the charts of a question; none while it is suppressed."""
    if result.disclosure == "hide":
        return PageCharts()
    return PageCharts(shares_svg(result), middle_svg(result), spread_svg(result))


def chart_file(survey: PublishedSurvey, specification: dict[str, Any], file_format: str) -> bytes:
    """Return a chart as a file: with a title and a white background, and TEST for a test run.

    Raises NotFoundError for an unknown format.
    """
    if file_format not in FORMATS:
        raise NotFoundError(
            f"there is no figure .{file_format}; the formats are {', '.join(FORMATS)}"
        )
    lines = textwrap.wrap(specification["description"], TITLE_CHARACTERS)
    title = {"text": lines, "anchor": "start", "frame": "group", "fontSize": 14, "offset": 12}
    if survey.is_test_run:
        title |= {"subtitle": TEST_SUBTITLE, "subtitleFontSize": 13, "subtitleFontWeight": "bold"}
    titled = {**specification, "background": "#ffffff", "padding": 16, "title": title}
    return convert(titled, file_format)


def convert(specification: dict[str, Any], file_format: str, png_scale: float = PNG_SCALE) -> bytes:
    """Return a Vega-Lite specification in one of `FORMATS`."""
    text = json.dumps(specification, ensure_ascii=False, indent=2)
    if file_format == "json":
        return text.encode("utf-8")
    import vl_convert

    if file_format == "svg":
        svg: str = vl_convert.vegalite_to_svg(text, vl_version=VEGA_LITE)
        return svg.encode("utf-8")
    if file_format == "png":
        png: bytes = vl_convert.vegalite_to_png(text, vl_version=VEGA_LITE, scale=png_scale)
        return png
    pdf: bytes = vl_convert.vegalite_to_pdf(text, vl_version=VEGA_LITE)
    return pdf
