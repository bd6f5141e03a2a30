"""Hostile Excel files: each is refused by name, within a second or two."""

from __future__ import annotations

import io
import time
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from survey.errors import DefinitionError
from survey.questionnaire.imports import import_questionnaire
from survey.questionnaire.imports.workbook import (
    MAX_FILE_BYTES,
    MAX_MEMBERS,
    MAX_ROWS,
    read_sheets,
)
from survey.questionnaire.imports.xlsform_sheets import plain
from tests.questionnaire.xlsforms import with_parts, workbook

pytestmark = pytest.mark.slow

CONTENT = workbook(survey=[["type", "name"], ["note", "x"]])
MAIN = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LAUGHS = b'<!DOCTYPE l [<!ENTITY a "ha">' + b"".join(
    b'<!ENTITY a%d "%s">' % (i, (b"&a%d;" % (i - 1) if i else b"&a;") * 10) for i in range(9)
)
FILE = b'<!DOCTYPE l [<!ENTITY a8 SYSTEM "file:///etc/hostname">'


def sheet(body: bytes, head: bytes = b"") -> bytes:
    return b"%s<worksheet %s><sheetData>%s</sheetData></worksheet>" % (head, MAIN, body)


def wide(xml: bytes) -> bytes:
    """Return XML in UTF-16, in which a search for its words in ASCII fails."""
    return xml.decode().encode("utf-16")


def with_member(name: str, data: bytes, n: int = 1) -> bytes:
    file = io.BytesIO(CONTENT)
    with ZipFile(file, "a", ZIP_DEFLATED) as archive:
        for i in range(n):
            archive.writestr(f"{name}{i or ''}", data)
    return file.getvalue()


def with_false_size(content: bytes) -> bytes:
    """Return a file whose directory says that its first part has a single byte."""
    directory = content.index(b"PK\x01\x02")
    local = bytearray(content)
    local[directory + 24 : directory + 28] = (1).to_bytes(4, "little")
    return bytes(local)


TEXT = b'<row><c t="inlineStr"><is><t>%s</t></is></c></row>'
HOSTILE = {
    "rows": (with_parts(CONTENT, sheet1=sheet(b"<row/>" * 1_000_000)), "too much content"),
    "texts": (with_parts(CONTENT, sheet1=sheet(TEXT % b"a" * (MAX_ROWS + 1))), "rows in a sheet"),
    "shared text": (
        workbook(survey=[["type", "label"], *[["note", "a" * 30_000]] * 800]),
        "2,000,000 characters",
    ),
    "far row": (with_parts(CONTENT, sheet1=sheet(b'<row r="99999999999"/>')), "1,048,576 rows"),
    "far column": (
        with_parts(CONTENT, sheet1=sheet(b'<row><c r="XFD1"/></row>' * 50_000)),
        "3,000,000 cells",
    ),
    "styles": (with_parts(CONTENT, styles=b"<a>" + b"<b/>" * 30_000 + b"</a>"), "formatting"),
    "zeros": (with_parts(CONTENT, sheet1=b" " * 100_000_000), "20,000,000 bytes"),
    "false size": (
        with_false_size(with_parts(CONTENT, **{"[Content_Types]": b" " * 10**7})),
        "zip archive",
    ),
    "members": (with_member("a.xml", b"<a/>", MAX_MEMBERS), "parts; at most 300"),
    "same member": (with_member("xl/../xl/workbook.xml", b"<a", 1), "no element found|mistake"),
    "macros": (with_member("xl/vbaProject.bin", b"x"), "macros"),
    "laughs": (with_parts(CONTENT, sheet1=sheet(TEXT % b"&a8;", LAUGHS + b"]>")), "entities"),
    "laughs in UTF-16": (with_parts(CONTENT, sheet1=wide(LAUGHS + b"]><a>&a8;</a>")), "be read"),
    "laughs in texts": (with_parts(CONTENT, sharedStrings=LAUGHS + b"]><sst/>"), "entities"),
    "laughs in the book": (with_parts(CONTENT, workbook=wide(LAUGHS + b"]><a/>")), "entities"),
    "file": (with_parts(CONTENT, sheet1=sheet(TEXT % b"&a8;", FILE + b"]>")), "entities"),
    "file in the book": (with_parts(CONTENT, workbook=FILE + b"]><a>&a8;</a>"), "entities"),
    "nested": (with_parts(CONTENT, workbook=b"<a>" * 15_000 + b"</a>" * 1_000), "mistake"),
    "old": (bytes.fromhex("d0cf11e0a1b11ae1") + b"0" * 999, "xls"),
    "cut": (CONTENT[:2_000], "zip archive"),
    "large": (CONTENT + b"0" * MAX_FILE_BYTES, "larger than"),
    "empty": (b"", "zip archive"),
    "no sheet": (workbook(other=[["type"]]), 'no sheet "survey"'),
    "empty sheet": (workbook(survey=[]), 'no sheet "survey" with content'),
    "no type": (workbook(survey=[["name"], ["x"]]), 'no column "type"'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_its_reason_and_soon(name):
    content, words = HOSTILE[name]
    start = time.process_time()
    with pytest.raises(DefinitionError, match=words):
        import_questionnaire(content, "form.xlsx")
    assert time.process_time() - start < 5


def test_markup_is_removed_in_a_time_that_grows_with_the_text():
    start = time.process_time()
    for text in ("*a ", "**a ", "**a*", "*", "<b c='", "<!--", '<b c="" d=', "<script>", "# "):
        plain(text * 100_000)
    assert time.process_time() - start < 5


def test_files_of_other_formats_are_refused_by_name():
    for name, words in (("a.xls", "save it as .xlsx"), ("a.XLSM", "macros"), ("a.doc", "XLSForm")):
        with pytest.raises(DefinitionError, match=words):
            import_questionnaire(CONTENT, name)


def test_nothing_is_read_without_the_protection_from_hostile_xml(monkeypatch):
    monkeypatch.setattr("openpyxl.DEFUSEDXML", False)
    with pytest.raises(DefinitionError, match="cannot be read safely"):
        import_questionnaire(CONTENT, "form.xlsx")


def test_formulas_have_their_saved_values_and_pictures_are_left_out():
    formula = b'<row><c t="str"><f>1+1</f><v>type</v></c><c><f>1+1</f><v>2</v></c></row>'
    content = with_parts(CONTENT, sheet1=sheet(formula))
    assert read_sheets(content, "form.xlsx", ["survey"]) == {"survey": [(1, ["type", "2"])]}
    unpacked = read_sheets(with_member("xl/media/a.png", b"0" * 30_000_000), "a", ["SURVEY"])
    assert unpacked["survey"] == [(1, ["type", "name"]), (2, ["note", "x"])]
