"""Texts that a spreadsheet would execute as formulas, as rows of a file."""

from __future__ import annotations

from survey.results.exports.xlsx import CodebookRow

STARTS = "=+-@\t\r\0"
"""Characters that start a formula, or that a program drops before one. The list comes from the
security design, not from the code under test."""

TEXTS = [start + formula for start in STARTS for formula in ("1+1", "=1+1", "cmd|' /C calc'!A0")]


def hostile_rows() -> list[CodebookRow]:
    """Return codebook rows with these texts, although definitions reject some of them."""
    return [
        CodebookRow(
            question_id="q",
            question_text=text,
            question_type="yes_no",
            option_id="o",
            option_label=text,
            is_no_answer=False,
            asked_if="",
            mechanism="",
            stated="",
            epsilon=-1.0,
        )
        for text in TEXTS
    ]
