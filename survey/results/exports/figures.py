"""The charts of a dashboard: as a page shows them, and as files of their own."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import vl_convert

from survey.errors import NotFoundError
from survey.results.charts import (
    LOOKS,
    VEGA_LITE,
    chart_specification,
    chart_svg,
    has_numbers,
    middle_specification,
    middle_svg,
    spread_specification,
    spread_svg,
)
from survey.results.estimates.question import QuestionResult
from survey.results.estimates.table import Row
from survey.store import PublishedSurvey


class Drawn(NamedTuple):
    """The charts of a question as SVG for a page; each empty where there is none."""

    shares: str = ""
    middle: str = ""
    spread: str = ""


def drawn(result: QuestionResult) -> Drawn:
    """What may be seen of a question, drawn."""
    if result.disclosure == "hide":
        return Drawn()
    return Drawn(chart_svg(result), middle_svg(result), spread_svg(result))


KINDS: Mapping[str, str] = {
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}
"""The forms of a figure, and the media type of each."""

PNG_SCALE = 3.0
TITLE_LETTERS = 62

TEST = "TEST: reports of a try-out"

_Rows = Callable[[QuestionResult], Sequence[Row]]
_Draw = Callable[[QuestionResult], dict[str, Any]]
_OnPage = Callable[[QuestionResult, str], str]
_PARTS: Mapping[str, tuple[_Rows, _Draw, _OnPage]] = {
    "shares": (lambda result: result.shares, chart_specification, chart_svg),
    "middle": (lambda result: result.middles, middle_specification, middle_svg),
    "spread": (lambda result: result.spread, spread_specification, spread_svg),
}


def picture(result: QuestionResult, part: str, look: str) -> str:
    """One chart of a question as its page shows it, as SVG text; `look` is light or dark.

    Raises NotFoundError as `figure` does.
    """
    if part not in _PARTS or look not in LOOKS:
        raise NotFoundError(f"there is no chart {part}-{look}")
    rows, _, on_page = _PARTS[part]
    _check_shown(result, part, rows)
    return on_page(result, look)


def figure(survey: PublishedSurvey, result: QuestionResult, part: str, kind: str) -> bytes:
    """One chart of a question: `part` shares, middle or spread; `kind` one of `KINDS`.

    Raises NotFoundError for a figure that there is not, or that is hidden on the page.
    """
    if part not in _PARTS or kind not in KINDS:
        raise NotFoundError(f"there is no figure {part}.{kind}")
    rows, draw, _ = _PARTS[part]
    _check_shown(result, part, rows)
    return as_file(survey, draw(result), kind)


def as_file(survey: PublishedSurvey, specification: dict[str, Any], kind: str) -> bytes:
    """A chart as a file of its own, with its description as its title, and TEST of a try-out.

    Raises NotFoundError for a `kind` that is none of `KINDS`.
    """
    if kind not in KINDS:
        raise NotFoundError(f"there is no figure .{kind}")
    written = json.dumps(_standing_alone(survey, specification), ensure_ascii=False, indent=2)
    return _CONVERTED[kind](written)


def _check_shown(result: QuestionResult, part: str, rows: _Rows) -> None:
    if result.disclosure == "hide" or not has_numbers(rows(result)):
        raise NotFoundError(f"the question {result.question.id} shows no figure of its {part}")


def _standing_alone(survey: PublishedSurvey, specification: dict[str, Any]) -> dict[str, Any]:
    """With its title in it, and on white: nobody knows on what it will be laid."""
    lines = textwrap.wrap(specification["description"], TITLE_LETTERS)
    title = {"text": lines, "anchor": "start", "frame": "group", "fontSize": 14, "offset": 12}
    if survey.is_test_run:
        title |= {"subtitle": TEST, "subtitleFontSize": 13, "subtitleFontWeight": "bold"}
    return {**specification, "background": "#ffffff", "padding": 16, "title": title}


_CONVERTED: Mapping[str, Callable[[str], bytes]] = {
    "json": lambda written: written.encode("utf-8"),
    "svg": lambda written: vl_convert.vegalite_to_svg(written, vl_version=VEGA_LITE).encode(),
    "png": lambda written: vl_convert.vegalite_to_png(
        written, vl_version=VEGA_LITE, scale=PNG_SCALE
    ),
    "pdf": lambda written: vl_convert.vegalite_to_pdf(written, vl_version=VEGA_LITE),
}
