"""Texts that a spreadsheet would obey, as rows of a file."""

from __future__ import annotations

from survey.results.exports.codebook import CodebookRow

STARTS = "=+-@\t\r\0"
"""What begins a formula, or is left out by a program that then finds one behind it; of the
security design, not of the code that is tested."""

TEXTS = [start + rest for start in STARTS for rest in ("1+1", "=1+1", "cmd|' /C calc'!A0")]


def coded() -> list[CodebookRow]:
    """Rows with such texts, as no definition brings them: it refuses control characters."""
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
