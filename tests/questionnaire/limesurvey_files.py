"""Small surveys as LimeSurvey writes them: XML before and since version 4, and tab-separated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from xml.sax.saxutils import escape

Texts = str | Mapping[str, str]
Tables = dict[str, list[dict[str, str]]]


@dataclass
class Item:
    """A question; `parts` and `answers` are pairs of code and text, with a scale if it is not 0."""

    code: str
    type: str
    text: Texts = "What?"
    help: Texts = ""
    parts: Sequence[tuple[str, ...]] = ()
    answers: Sequence[tuple[str, ...]] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def in_language(text: Texts, tag: str) -> str:
    return text if isinstance(text, str) else text.get(tag, "")


def xml(tables: Tables) -> bytes:
    """Return tables as an .lss file."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>', "<document>"]
    parts.append(" <LimeSurveyDocType>Survey</LimeSurveyDocType>")
    for table, rows in tables.items():
        parts += [f" <{table}>", "  <rows>"]
        for row in rows:
            cells = "".join(
                f"<{key}><![CDATA[{value}]]></{key}>"
                if "&" in value
                else f"<{key}>{escape(value)}</{key}>"
                for key, value in row.items()
            )
            parts.append(f"   <row>{cells}</row>")
        parts += ["  </rows>", f" </{table}>"]
    return "\n".join([*parts, "</document>"]).encode()


def tables(
    groups: Mapping[str, Sequence[Item]], *, is_old: bool, languages: Sequence[str] = ("en",)
) -> Tables:
    """Return the tables of a survey; in old ones, each row is repeated for each language."""
    names = ("surveys", "surveys_languagesettings", "groups", "questions", "subquestions")
    names += ("answers", "question_attributes")
    made: Tables = {name: [] for name in names}
    made |= (
        {} if is_old else {name: [] for name in ("group_l10ns", "question_l10ns", "answer_l10ns")}
    )
    made["surveys"].append({"sid": "1", "language": "en", "additional_languages": "de"})
    for tag in languages:
        title = {"en": "Work", "de": "Arbeit"}[tag]
        made["surveys_languagesettings"].append(
            {"surveyls_language": tag, "surveyls_title": title, "surveyls_endtext": "<b>Thanks</b>"}
        )
    numbers = count(10)

    def add(table: str, row: dict[str, str], id_key: str, texts: Mapping[str, Texts]) -> None:
        l10n = {"groups": "group_l10ns", "answers": "answer_l10ns"}.get(table, "question_l10ns")
        localized = [
            {"language": tag} | {key: in_language(text, tag) for key, text in texts.items()}
            for tag in languages
        ]
        if is_old:
            made[table] += [row | own for own in localized]
        else:
            made[table].append(row)
            made[l10n] += [{id_key: row[id_key], **own} for own in localized]

    for order, (group, items) in enumerate(groups.items()):
        gid = str(next(numbers))
        add("groups", {"gid": gid, "group_order": str(order)}, "gid", {"group_name": group})
        for place, item in enumerate(items):
            qid = str(next(numbers))
            row = {"qid": qid, "parent_qid": "0", "gid": gid, "type": item.type}
            row |= {"title": item.code, "question_order": str(place), **item.settings}
            add("questions", row, "qid", {"question": item.text, "help": item.help})
            for number, (code, text, *scale) in enumerate(item.parts):
                row = {"qid": str(next(numbers)), "parent_qid": qid, "title": code}
                row |= {"question_order": str(number), "scale_id": "".join(scale) or "0"}
                add("subquestions", row, "qid", {"question": text})
            for number, (code, text, *scale) in enumerate(item.answers):
                row = {"aid": str(next(numbers)), "qid": qid, "code": code}
                row |= {"sortorder": str(number), "scale_id": "".join(scale) or "0"}
                add("answers", row, "aid", {"answer": text})
            made["question_attributes"] += [
                {"qid": qid, "attribute": key, "value": value}
                for key, value in item.attributes.items()
            ]
    return made


def tab_separated(
    groups: Mapping[str, Sequence[Item]], languages: Sequence[str] = ("en",)
) -> bytes:
    """Return a survey as tab-separated values, whose rows are repeated for each language."""
    keys = {key: "" for items in groups.values() for item in items for key in item.attributes}
    columns = ["class", "type/scale", "name", "relevance", "text", "help", "language", "validation"]
    columns += ["mandatory", "other", "default", "same_default", *keys]
    rows = [*_rows(groups, languages)]
    lines = ["\t".join(columns)]
    lines += ["\t".join(row.get(column, "") for column in columns) for row in rows]
    return "\ufeff".encode() + "\r\n".join(lines).encode()


def _rows(
    groups: Mapping[str, Sequence[Item]], languages: Sequence[str]
) -> Iterator[dict[str, str]]:
    yield {"class": "S", "name": "language", "text": "en"}
    yield {"class": "S", "name": "additional_languages", "text": "de"}
    for tag in languages:
        title = {"en": "Work", "de": "Arbeit"}[tag]
        for name, text in (("title", title), ("endtext", "<b>Thanks</b>")):
            yield {"class": "SL", "name": f"surveyls_{name}", "text": text, "language": tag}
    for tag in languages:
        for group, items in groups.items():
            yield {"class": "G", "name": group, "language": tag}
            for item in items:
                settings = {
                    {"preg": "validation"}.get(key, key): value
                    for key, value in item.settings.items()
                }
                texts = {"text": in_language(item.text, tag), "help": in_language(item.help, tag)}
                row = {"class": "Q", "type/scale": item.type, "name": item.code, "language": tag}
                yield {**row, **settings, **texts, **item.attributes}
                for class_, entries in (("SQ", item.parts), ("A", item.answers)):
                    for code, text, *scale in entries:
                        row = {"class": class_, "name": code, "language": tag}
                        row["type/scale"] = "".join(scale) or "0"
                        yield {**row, "text": in_language(text, tag)}


def every_format(
    groups: Mapping[str, Sequence[Item]], languages: Sequence[str] = ("en",)
) -> dict[str, bytes]:
    """Return a survey in each format, by the name of its file."""
    return {
        "old.lss": xml(tables(groups, is_old=True, languages=languages)),
        "new.lss": xml(tables(groups, is_old=False, languages=languages)),
        "rows.txt": tab_separated(groups, languages),
    }
