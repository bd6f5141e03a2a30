"""The charts of a dashboard as files of their own: the specification, SVG, PNG, PDF."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import vl_convert

from survey.errors import NotFoundError
from survey.results.charts import (
    VEGA_LITE,
    chart_specification,
    has_numbers,
    middle_specification,
    spread_specification,
)
from survey.results.question import QuestionResult
from survey.results.rows import Row

KINDS: Mapping[str, str] = {
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "pdf": "application/pdf",
}
"""The forms of a figure, and the media type of each."""

PNG_SCALE = 3.0
TITLE_LETTERS = 62

_Rows = Callable[[QuestionResult], Sequence[Row]]
_Draw = Callable[[QuestionResult], dict[str, Any]]
_PARTS: Mapping[str, tuple[_Rows, _Draw]] = {
    "shares": (lambda result: result.shares, chart_specification),
    "middle": (lambda result: result.middles, middle_specification),
    "spread": (lambda result: result.spread, spread_specification),
}


def figure(result: QuestionResult, part: str, kind: str) -> bytes:
    """One chart of a question: `part` shares, middle or spread; `kind` one of `KINDS`.

    Raises NotFoundError for a figure that there is not, or that is hidden on the page.
    """
    if part not in _PARTS or kind not in KINDS:
        raise NotFoundError(f"there is no figure {part}.{kind}")
    rows, draw = _PARTS[part]
    if result.disclosure == "hide" or not has_numbers(rows(result)):
        raise NotFoundError(f"the question {result.question.id} shows no figure of its {part}")
    written = json.dumps(_standing_alone(draw(result)), ensure_ascii=False, indent=2)
    return _CONVERTED[kind](written)


def _standing_alone(specification: dict[str, Any]) -> dict[str, Any]:
    """With its title in it, and on white: nobody knows on what it will be laid."""
    lines = textwrap.wrap(specification["description"], TITLE_LETTERS)
    title = {"text": lines, "anchor": "start", "frame": "group", "fontSize": 14, "offset": 12}
    return {**specification, "background": "#ffffff", "padding": 16, "title": title}


_CONVERTED: Mapping[str, Callable[[str], bytes]] = {
    "json": lambda written: written.encode("utf-8"),
    "svg": lambda written: vl_convert.vegalite_to_svg(written, vl_version=VEGA_LITE).encode(),
    "png": lambda written: vl_convert.vegalite_to_png(
        written, vl_version=VEGA_LITE, scale=PNG_SCALE
    ),
    "pdf": lambda written: vl_convert.vegalite_to_pdf(written, vl_version=VEGA_LITE),
}
