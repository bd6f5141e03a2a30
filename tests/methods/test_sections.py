"""The methods in Markdown agree with the code: every method a result can name is documented."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re

import pytest

from survey.disclosure import MINIMUM_REPORTS, OTHER_GROUPS
from survey.estimator.core.intervals import DEFAULT_INTERVAL, INTERVALS, continuity
from survey.estimator.planning.expected_margin import (
    NORMAL_COUNTS,
    NORMAL_DISTANCES,
    PLANNED_NO_ANSWER,
)
from survey.estimator.planning.power import FEW_COUNTS
from survey.estimator.planning.sample_size import LATER
from survey.estimator.trust.suppression import HIDDEN_MARGIN, SHOWN_MARGIN
from survey.estimator.trust.worst_case import REFUSAL_RATE
from survey.mechanism.numeric import HYBRID_FROM
from survey.methods import (
    Section,
    interval_anchor,
    mechanism_anchor,
    references,
    render,
    sections,
    symbols,
    topics,
)
from survey.questionnaire.designs import DESIGNS
from survey.questionnaire.privacy_loss import WEAK_REPORT_ABOVE
from survey.questionnaire.similar_texts import NEARLY_EQUAL, SHORT, WORDS_RAISE
from survey.results.estimates.compute import MAX_CHANNEL_SIZE
from survey.results.estimates.histogram import MAX_CELLS
from survey.results.estimates.table import FLAGS, MECHANISMS, NOT_ESTIMABLE
from survey.results.request import INTERVAL_CHOICES
from tests.cases import each_case

SECTIONS = [section for topic in topics() for section in topic.sections]

LABELS = {"Example", "Validity", "Limits", "Functions", "References"}

FORBIDDEN = re.compile(r"\b(lying|liars?|fakes?|anonym\w*|encrypt\w*|honest\w*)\b", re.I)
"""Words that the product avoids; names of functions and attributes may contain them."""


def function_named(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def failures(example: str, name: str) -> str:
    """Run an example as a doctest and return the report of its failures."""
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(example, {}, name, None, 0)
    assert test.examples, f"{name}: no example found"
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    return "".join(report)


def test_every_interval_has_a_section():
    for name in (*INTERVAL_CHOICES, *INTERVALS):
        assert interval_anchor(name) in sections(), name


def test_every_mechanism_has_a_section_under_the_name_that_results_use():
    assert set(DESIGNS) == set(MECHANISMS)
    for name, words in MECHANISMS.items():
        assert sections()[mechanism_anchor(name)].title == words[0].upper() + words[1:]


def test_every_flag_has_a_section():
    for flag in {*FLAGS.values(), NOT_ESTIMABLE} - {""}:
        assert f"flag-{flag}" in sections(), flag


def test_no_two_sections_share_an_anchor():
    anchors = [anchor for section in SECTIONS for anchor in section.anchors]
    assert len(anchors) == len(set(anchors))


def test_every_heading_is_read_as_a_section():
    assert len(topics()) >= 12
    for topic in topics():
        assert topic.sections, topic.name
        for section in topic.sections:
            assert "\n## " not in section.source, f"{topic.name}: a heading lacks its anchor"


def test_every_section_has_a_description_and_known_labels_only():
    for section in SECTIONS:
        assert not section.source.startswith(("**", "```")), section.anchor
        labels = re.findall(r"^\*\*(.+?)\*\*", section.source, re.M)
        assert {label.removesuffix(".") for label in labels} <= LABELS, section.anchor


def test_every_function_named_exists():
    for section in SECTIONS:
        assert section.functions, f"{section.anchor} names no function"
        for name in section.functions:
            assert callable(function_named(name)), f"{section.anchor}: {name}"


def test_every_citation_has_a_reference_and_every_reference_is_cited():
    assert {key for section in SECTIONS for key in section.references} == set(references())
    for key, text in references().items():
        assert f"({key[-4:]})" in text, key


def test_the_code_of_a_method_cites_the_same_works_as_its_section():
    for section in SECTIONS:
        modules = [inspect.getmodule(function_named(name)) for name in section.functions]
        code = " ".join(inspect.getsource(module) for module in modules)
        for key in section.references:
            author = re.split(r",| and | et al", key)[0]
            assert author in code, f"{section.anchor}: the code does not cite {key}"
            assert key[-4:] in code, f"{section.anchor}: the code does not cite {key}"


@pytest.mark.slow
@each_case("topic", topics())
def test_every_number_in_an_example_is_what_the_code_computes(topic):
    for section in topic.sections:
        for example in section.examples:
            assert failures(example, section.anchor) == ""


def test_an_example_with_a_wrong_number_fails():
    (example,) = sections()["share"].examples
    assert failures(example, "share") == ""
    assert "Got:\n    Estimated share: 20.0%" in failures(
        example.replace("20.0%", "21.0%"), "share"
    )


def test_the_constants_in_the_text_are_those_of_the_code():
    stated = {
        "suppression": (f"margin is above {HIDDEN_MARGIN:.2f}", f"is above {SHOWN_MARGIN:.2f}",
                        f"if {REFUSAL_RATE:.0%} did not answer"),
        "histogram": (f"at most {MAX_CELLS} cells",),
        "median": (f"more than {MAX_CHANNEL_SIZE:,} probabilities",),
        "interval-fieller": (f"{continuity(0.95):.3f} of a report",),
        "mechanism-hybrid": (f"epsilon {HYBRID_FROM}",),
        "questions-per-person": (f"more than {WEAK_REPORT_ABOVE}, the survey warns",),
        "nearly-equal": (f"similarity of {NEARLY_EQUAL} or more", f"at most c plus {WORDS_RAISE}",
                         f"fewer than {SHORT} letters"),
        "few-answers": (f"until {MINIMUM_REPORTS} released", f"than {MINIMUM_REPORTS} answers"),
        "planned-margin": (f"is {NORMAL_COUNTS[1]:.0f} or more", f"z + {NORMAL_DISTANCES[1]:.0f} ",
                           f"assumes that {PLANNED_NO_ANSWER:.0%} do not"),
        "planning": (f"the next {LATER} numbers",),
        "power": (f"the next {LATER} numbers", f"is below {FEW_COUNTS:.0f},"),
        "strata": (f"fewer than {MINIMUM_REPORTS} released", f"“{OTHER_GROUPS}”"),
    }  # fmt: skip
    for anchor, texts in stated.items():
        for text in texts:
            assert text in sections()[anchor].source, f"{anchor}: {text}"
    assert sections()[interval_anchor(DEFAULT_INTERVAL)].source.startswith("The default interval")


def test_every_formula_has_a_spoken_wording_and_no_unset_index():
    for section in SECTIONS:
        assert section.source.count("```formula") == len(section.formulas)
        for formula in section.formulas:
            assert len(formula.wording.split()) > 3, formula
            assert "\n" not in formula.wording, formula
            assert not re.search(r"[_^]\{|[_^]\w", str(formula.html)), formula


def test_formulas_and_symbols_are_rendered_with_subscripts():
    page = sections()["share"].html
    assert 'role="math" aria-label="The estimated share of option j is its share' in page
    assert "π̂<sub>j</sub> = (f<sub>j</sub> − q) / D" in page
    assert "<td>λ<sub>j</sub></td>" in symbols()


@pytest.mark.security
def test_html_in_markdown_is_shown_as_text():
    page = render("<script>1</script>\n\na <b>b</b> [c](javascript:alert(1))\n\n```x\n<i>\n```")
    for tag in ("<script", "<b>", "<i>", 'href="javascript'):
        assert tag not in page


def test_no_section_uses_a_word_that_the_product_avoids():
    for section in SECTIONS:
        prose = re.sub(r"^```python.*?^```$", "", section.source, flags=re.M | re.S)
        assert not FORBIDDEN.search(f"{section.title} {prose}"), section.anchor


def test_the_regression_example_recovers_the_simulated_coefficients():
    section: Section = sections()["regression"]
    output = section.examples[0].splitlines()[-1]
    intercept, age = (float(number) for number in re.findall(r"-?\d\.\d+", output))
    assert intercept == pytest.approx(-1, abs=0.2)
    assert age == pytest.approx(1, abs=0.2)
