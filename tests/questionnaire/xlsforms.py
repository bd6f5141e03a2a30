"""XLSForms for tests, written cell by cell."""

from __future__ import annotations

import io
from collections.abc import Sequence
from zipfile import ZIP_DEFLATED, ZipFile

import xlsxwriter


def workbook(**sheets: Sequence[Sequence[object]]) -> bytes:
    """Return an Excel file with these sheets, each a list of rows."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_formulas": False}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for i, row in enumerate(rows):
                for j, value in enumerate(row):
                    sheet.write(i, j, value)
    return file.getvalue()


LISTS = {
    "yn": [("yes", "Yes"), ("no", "No")],
    "job": [("a", "Office"), ("b", "Site"), ("c", "Home")],
    "points": [(str(i), str(i)) for i in range(6)],
    "ends": [("-1", "-1 (bad)"), ("0", "0"), ("1", "1 (good)")],
    "agree": [("1", "Disagree"), ("2", "Neither"), ("3", "Agree")],
    "codes": [("3", "3"), ("1", "1"), ("2", "2")],
    "none": [("a", "Office"), ("b", "Site"), ("none", "Nowhere")],
    "silent": [("a", "Office"), ("b", "Site"), ("prefer_not_to_say", "No comment")],
    "one": [("a", "Office")],
    "seven": [(letter, letter.upper()) for letter in "abcdefg"],
}
CHOICES = [
    ("list_name", "name", "label"),
    *((name, value, label) for name, choices in LISTS.items() for value, label in choices),
]


def form(*rows: dict[str, object], choices: object = None, **settings: object) -> bytes:
    """Return an XLSForm with these rows of the sheet survey and usual lists of choices."""
    headers = list(dict.fromkeys(key for row in rows for key in row))
    survey = [headers, *([row.get(header) for header in headers] for row in rows)]
    values = [list(settings), list(settings.values())] if settings else []
    return workbook(survey=survey, choices=choices or CHOICES, settings=values)


def with_parts(content: bytes, **parts: bytes) -> bytes:
    """Return a file in which parts are replaced, by the last word of their name."""
    copy = io.BytesIO()
    with ZipFile(io.BytesIO(content)) as source, ZipFile(copy, "w", ZIP_DEFLATED) as target:
        for name in source.namelist():
            word = name.rpartition("/")[2].partition(".")[0]
            target.writestr(name, parts.get(word, source.read(name)))
    return copy.getvalue()
