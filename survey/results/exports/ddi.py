"""The codebook as DDI-Codebook 2.5 XML, which data archives and catalogues read.

It describes the variables of the table of reports (`report_table`): names, labels, categories,
question texts in all languages, and how the answers were randomized. Source: DDI Alliance,
DDI-Codebook 2.5, https://ddialliance.org/Specification/DDI-Codebook/2.5/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from survey.mechanism.composition import format_epsilon
from survey.questionnaire.kinds import PublishedQuestion
from survey.questionnaire.privacy_loss import report_heading, report_sentences
from survey.results.estimates.table import MECHANISMS
from survey.results.exports.report_table import Variable, table_variables
from survey.store import PublishedSurvey, Tally
from survey.version import __version__

NAMESPACE = "ddi:codebook:2_5"
SCHEMA = "http://www.ddialliance.org/Specification/DDI-Codebook/2.5/XMLSchema/codebook.xsd"
XSI = "http://www.w3.org/2001/XMLSchema-instance"

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even escaped."""

RANDOMIZATION = (
    "The respondent’s device randomized every answer before it sent the report (local differential "
    "privacy). A cell of a code or of a named option is therefore no true answer, and must not be "
    "treated as one. The columns of shares, means and mean ranks are debiased: their plain average "
    "over the cells that are not empty is the unbiased published estimate, which may lie outside "
    "the possible range. Do not select rows by a code: the result would be biased."
)


def codebook_xml(survey: PublishedSurvey, tally: Tally) -> bytes:
    """Return the codebook of a survey's table of reports."""
    definition = survey.definition
    root = Element(
        "codeBook",
        {
            "xmlns": NAMESPACE,
            "xmlns:xsi": XSI,
            "xsi:schemaLocation": f"{NAMESPACE} {SCHEMA}",
            "version": "2.5",
            "ID": f"survey-{survey.slug}-{survey.version}",
            "xml:lang": definition.languages[0],
        },
    )
    variables = table_variables(definition, tally)
    texts = _translations(survey)
    _describe_document(SubElement(root, "docDscr"), survey)
    _describe_study(SubElement(root, "stdyDscr"), survey, texts)
    _describe_file(SubElement(root, "fileDscr", ID="F1"), tally.n, len(variables))
    data = SubElement(root, "dataDscr")
    questions = {question.id: question for question in definition.questions}
    for variable in variables:
        _describe_variable(data, variable, questions.get(variable.question_id), texts)
    indent(root)
    xml: bytes = tostring(root, "utf-8", xml_declaration=True)
    return xml + b"\n"


@dataclass(frozen=True)
class _Translation:
    """The texts of a survey in one language; questions by id."""

    language: str
    title: str
    introduction: str
    questions: dict[str, str]


def _translations(survey: PublishedSurvey) -> Sequence[_Translation]:
    """Return the texts in every language of the survey, its own first."""
    form = json.loads(survey.canonical)
    texts = [
        _Translation(
            form["language"],
            form["title"],
            form["introduction"],
            {question.id: question.text for question in survey.definition.questions},
        )
    ]
    ids = [question["id"] for page in form["pages"] for question in page["questions"]]
    for language, other in form.get("translations", {}).items():
        asked = [question["text"] for page in other["pages"] for question in page["questions"]]
        translated = dict(zip(ids, asked, strict=True))
        texts.append(_Translation(language, other["title"], other["introduction"], translated))
    return texts


def _add(parent: Element, tag: str, text: str = "", /, **attributes: str) -> Element:
    """Add an element with a text, without the characters that XML does not allow."""
    plain = {key.replace("_", ":"): value for key, value in attributes.items()}
    element = SubElement(parent, tag, plain)
    element.text = FORBIDDEN.sub("", text) or None
    return element


def _add_title(parent: Element, survey: PublishedSurvey, texts: Sequence[_Translation]) -> None:
    statement = SubElement(SubElement(parent, "citation"), "titlStmt")
    _add(statement, "titl", survey.definition.title)
    for text in texts[1:]:
        if text.title:
            _add(statement, "parTitl", text.title, xml_lang=text.language)
    _add(statement, "IDNo", f"{survey.slug}, version {survey.version}", agency="survey")
    _add(statement, "IDNo", survey.sha256, agency="SHA-256 of the definition")


def _describe_document(parent: Element, survey: PublishedSurvey) -> None:
    citation = SubElement(parent, "citation")
    statement = SubElement(citation, "titlStmt")
    _add(statement, "titl", f"Codebook: {survey.definition.title}")
    production = SubElement(citation, "prodStmt")
    _add(production, "software", "survey", version=__version__)


def _describe_study(
    parent: Element, survey: PublishedSurvey, texts: Sequence[_Translation]
) -> None:
    definition = survey.definition
    _add_title(parent, survey, texts)
    information = SubElement(parent, "stdyInfo")
    for text in texts:
        if text.introduction:
            _add(information, "abstract", text.introduction, xml_lang=text.language)
    summary = SubElement(information, "sumDscr")
    _add(summary, "anlyUnit", "Individual")
    _add(summary, "dataKind", "Survey data, randomized on the respondents’ devices")
    _add(information, "notes", f"Languages: {', '.join(definition.languages)}")
    method = SubElement(parent, "method")
    collection = SubElement(method, "dataColl")
    _add(collection, "collMode", "Self-administered questionnaire: web-based")
    _add(collection, "resInstru", _instrument(survey))
    _add(collection, "weight", "There are no weights.")
    analysis = SubElement(method, "anlyInfo")
    loss = f"{report_heading(definition)}. {report_sentences(definition.ratio)}"
    _add(analysis, "dataAppr", f"{RANDOMIZATION} {loss}")


def _instrument(survey: PublishedSurvey) -> str:
    definition = survey.definition
    text = f"Number of questions: {len(definition.questions)}."
    if definition.is_sampled:
        text += (
            f" Each respondent was asked {definition.drawn} of {len(definition.groups)} groups of "
            "questions, drawn at random."
        )
    return text


def _describe_file(parent: Element, n: int, n_variables: int) -> None:
    text = SubElement(parent, "fileTxt")
    _add(text, "fileName", "reports")
    dimensions = SubElement(text, "dimensns")
    _add(dimensions, "caseQnty", str(n))
    _add(dimensions, "varQnty", str(n_variables))


def _describe_variable(
    data: Element,
    variable: Variable,
    question: PublishedQuestion | None,
    texts: Sequence[_Translation],
) -> None:
    interval = "contin" if variable.is_debiased else "discrete"
    element = _add(data, "var", name=variable.name, ID=f"V_{variable.name}", files="F1")
    element.set("intrvl", interval)
    _add(element, "labl", variable.label)
    if question is not None:
        asked = SubElement(element, "qstn")
        for language, text in _question_texts(question, texts):
            _add(asked, "qstnLit", text, xml_lang=language)
        _add(element, "txt", _randomization(question))
    for code, label in variable.labels.items():
        category = SubElement(element, "catgry")
        _add(category, "catValu", str(code))
        _add(category, "labl", label)
    _add(element, "varFormat", type="character" if variable.content == "group" else "numeric")
    _add(element, "notes", f"Content: {variable.content}")


def _question_texts(
    question: PublishedQuestion, texts: Sequence[_Translation]
) -> Iterator[tuple[str, str]]:
    for text in texts:
        if asked := text.questions.get(question.id):
            yield text.language, asked


def _randomization(question: PublishedQuestion) -> str:
    """Return how the answers to a question were randomized, in one sentence."""
    channel: Any = question.channel
    chances = "" if channel.truth_probability is None else f", p = {channel.truth_probability:.6g}"
    return (
        f"Randomized by {MECHANISMS[question.mechanism]}{chances}, "
        f"epsilon {format_epsilon(channel.epsilon)} for this question alone."
    )
