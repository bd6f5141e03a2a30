"""`survey plan` prints numbers, draws charts, and explains impossible plans in one line."""

from __future__ import annotations

import json
import re
import struct
import tomllib
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.demo import DEFINITION as DEMO
from survey.estimator import margin_of, power, required_n_difference
from tests.surveys import MATRIX, RANKING


def run(*arguments: str):
    return CliRunner().invoke(main, ["plan", *arguments])


def test_epsilon_and_margin_give_the_number_of_reports():
    result = run("--epsilon", "1", "--margin", "0.03")
    assert result.exit_code == 0
    assert re.search(r"^reports +4,997$", result.output, re.M)
    assert re.search(r"^margin +±3.00 points at level 0.95$", result.output, re.M)
    assert "probability 0.731" in result.output


def test_a_small_population_requires_fewer_reports():
    result = run("--epsilon", "1", "--margin", "0.03", "--population", "5000")
    assert re.search(r"^reports +4,184 of 5,000 people$", result.output, re.M)


def test_epsilon_and_n_give_the_margin_and_its_parts():
    result = run("--epsilon", "1", "--n", "4997")
    assert re.search(r"^margin +±3.00 points", result.output, re.M)
    sampling, privacy = (
        float(re.search(rf"{name} +±([\d.]+)", result.output)[1])
        for name in ("sampling", "privacy")
    )
    assert np.hypot(sampling, privacy) == pytest.approx(3.0, abs=0.01)


def test_n_and_margin_give_epsilon():
    result = run("--n", "4997", "--margin", "0.03", "--options", "2")
    assert result.exit_code == 0
    assert re.search(r"^epsilon +(1|1\.000|0\.9999),", result.output, re.M)


def test_the_table_has_a_row_per_epsilon_and_a_column_per_number_of_reports():
    result = run("--options", "4", "--share", "0.2", "--epsilon", "1.25")
    assert result.exit_code == 0
    head = next(line for line in result.output.splitlines() if line.startswith(" epsilon"))
    sizes = [int(size.replace(",", "")) for size in re.findall(r"n=([\d,]+)", head)]
    assert sizes == [100, 500, 1000, 2000, 5000, 10_000]
    row = next(line for line in result.output.splitlines() if line.startswith("    1.25"))
    expected = [f"±{100 * margin_of(n, epsilon=1.25, k=4, share=0.2).margin:.1f}" for n in sizes]
    assert row.split()[2:] == expected


def test_the_power_to_detect_a_difference_between_two_groups_is_printed():
    result = run("--epsilon", "1", "--n", "500", "--share", "0.2", "--against", "0.4")
    rows = result.output.split("Power in per cent to detect the difference")[1].splitlines()
    assert rows[2].split()[2:4] == ["n=100", "n=500"]
    cells = next(row for row in rows if row.startswith("       1 ")).split()
    assert cells[3] == f"{100 * power(500, 500, 0.2, 0.4, epsilon=1).power:.0f}"
    assert cells[-1] == f"{required_n_difference(0.2, 0.4, epsilon=1).n_a:,}"
    assert cells[-2] == ">99"


def test_equal_shares_in_both_groups_are_rejected():
    result = run("--share", "0.2", "--against", "0.2")
    assert result.exit_code == 1
    assert "no number of reports shows a difference" in result.output


def test_without_options_the_table_is_printed():
    result = run()
    assert result.exit_code == 0
    assert "Margin of error in points" in result.output


def test_headings_of_the_largest_surveys_are_separated():
    lines = run("--n", "10000000000", "--epsilon", "1").output.splitlines()
    head, *rows = lines[next(i for i, line in enumerate(lines) if line.startswith(" epsilon")) :]
    assert head.split()[-2:] == ["n=10,000", "n=10,000,000,000"]
    assert {len(line) for line in (head, *rows)} == {len(head)}
    assert {len(re.split("  +", line.strip())) for line in (head, *rows)} == {9}


def test_the_smallest_margins_keep_their_digits(tmp_path):
    file = tmp_path / "chart.svg"
    result = run("--n", "10000000000", "--epsilon", "1", "--chart", str(file))
    assert re.search(r"^margin +±0.0021 points", result.output, re.M)
    assert re.search(r"^  sampling +±0.00098 points", result.output, re.M)
    assert "±0.0 " not in result.output + " "
    assert "±0.002 points" in "".join(ET.fromstring(file.read_text(encoding="utf-8")).itertext())
    impossible = run("--n", "10000000000", "--margin", "0.000001")
    assert impossible.stderr == (
        "survey: not possible with 10,000,000,000 reports at any epsilon; "
        "the smallest possible margin is 0.00000980\n"
    )


def test_a_small_population_is_the_last_column():
    head = run("--population", "3000").output.splitlines()[1]
    assert head.split()[-1] == "n=3,000"
    assert "n=5,000" not in head


def test_the_charts_are_written_as_svg_and_png(tmp_path):
    chart, grid = tmp_path / "chart.svg", tmp_path / "grid.PNG"
    result = run(
        "--epsilon", "1", "--margin", "0.03", "--chart", str(chart), "--grid", str(grid)
    )  # fmt: skip
    assert result.exit_code == 0
    text = "".join(ET.fromstring(chart.read_text(encoding="utf-8")).itertext())
    for words in ("What privacy costs", "10,000 reports", "The dot: 4,997 reports", "±10 points"):
        assert words in text
    png = grid.read_bytes()
    assert png.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", png[16:24])
    assert width > height > 400


def test_the_same_command_draws_the_same_grid(tmp_path):
    files = [tmp_path / name for name in ("one.svg", "two.svg")]
    for file in files:
        assert run("--grid", str(file)).exit_code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    text = "".join(ET.fromstring(files[0].read_text(encoding="utf-8")).itertext())
    for words in ("100 reports", "500 reports", "2,000 reports", "0.001"):
        assert words in text


def test_an_impossible_margin_is_rejected_with_the_smallest_possible_one():
    result = run("--epsilon", "1", "--margin", "0.03", "--population", "2000")
    assert result.exit_code == 1
    assert result.stderr == (
        "survey: not possible at this epsilon; the smallest possible margin is 0.0427\n"
    )
    assert result.stdout.startswith("The nearest possible plan:\nreports        2,000 of 2,000")


def test_a_wrong_value_gives_one_clear_line_and_exit_code_1():
    for arguments, message in (
        (["--epsilon", "20", "--n", "100"], "nearest allowed value is 12"),
        (["--epsilon", "0"], "nearest allowed value is 0.001"),
        (["--epsilon", "nan"], "epsilon = nan is not a number"),
        (["--share", "nan"], "share = nan is not a number"),
        (["--level", "nan"], "level = nan is not a number"),
        (["--epsilon", "1", "--margin", "nan"], "margin = nan is not a number"),
        (["--epsilon", "inf"], "nearest allowed value is 12"),
        (["--n", "1" + 400 * "0"], "nearest allowed value is 10000000000"),
        (["--epsilon", "1", "--margin", "3"], "3 points are 0.03"),
        (["--epsilon", "1", "--margin", "-1"], "nearest allowed value is 0.001"),
        (["--epsilon", "1", "--n", "0"], "nearest allowed value is 1"),
        (["--epsilon", "1", "--n", "200", "--population", "100"], "nearest allowed value is 100"),
        (["--options", "1"], "nearest allowed value is 2"),
        (["--options", "20000"], "nearest allowed value is 10000"),
        (["--share", "1.5"], "nearest allowed value is 1"),
        (["--level", "1"], "level = 1.0 must be between 0 and 1"),
        (["--level", "1e-300", "--epsilon", "1", "--margin", "0.1"], "level = 1e-300 must be"),
        (["--population", "0"], "population = 0 must be a whole number from 1"),
        (["--population", "0", "--n", "50"], "population = 0 must be a whole number from 1"),
        (["--population", "-3", "--options", "1"], "options = 1 must be a whole number from 2"),
        (["--margin", "0.03"], "--margin requires"),
        (["--margin", "0.03", "--epsilon", "1", "--n", "9"], "give two of --epsilon"),
        (["--n", "500", "--margin", "0.01"], "at any epsilon"),
        (["--chart", "plan.pdf"], "write plan.svg"),
        (["--grid", "plan"], "must end in .svg or .png"),
        (["--chart", "nowhere/plan.svg"], "No such file"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert result.stderr.startswith("survey: "), arguments
        assert len(result.stderr.splitlines()) == 1, arguments
        assert message in result.stderr, arguments


def test_a_value_that_is_not_a_number_is_a_usage_error():
    assert run("--epsilon", "much").exit_code == 2
    assert run("--n", "1.5").exit_code == 2


def survey_run(*arguments: str, questions: str = "8", total: str = "2.9"):
    return run("--questions", questions, "--total", total, "--n", "2000", *arguments)


def test_the_designs_of_a_survey_show_margins_bounds_and_crossings():
    result = survey_run(total="2")
    assert result.exit_code == 0, result.output
    row = re.search(r"^ +2 of 8 .*$", result.output, re.M)[0].split()
    # Two answers at epsilon 1: 500 responses each, 2000 * 2/56 = 71 to a given pair.
    assert row[3:6] == ["500", "x2.8", "x7.4"]
    assert row[7] == "71"
    assert re.search(r"^ +\* 1 of 8 +250 +x7.4 +x7.4 +±7.\d +0 +-$", result.output, re.M)
    assert "Recommended (*): ask each person 1 of 8 questions." in result.output
    assert "Questions from different groups cannot be cross-tabulated." in result.output
    assert re.search(r"^  q1 and 7 more +grr, epsilon 2$", result.output, re.M)
    margins = re.search(r"^q1 and 7 more +(.*)$", result.output, re.M)[1].split()
    assert margins[1] == f"±{100 * margin_of(500, epsilon=1).margin:.1f}"


def test_a_declared_crossing_is_part_of_the_recommendation():
    result = survey_run("--cross", "q1,q2", total="2")
    assert re.search(r"^ +\* 1 of 7 .* 285 ±\d+\.\d$", result.output, re.M), result.output
    assert "q1 x q2" in result.output
    assert "  Asked together or not at all: q1, q2." in result.output
    assert "q1 and 1 more                 grr, epsilon 1, randomized jointly" in result.output


def test_a_half_space_of_all_yes_no_questions_is_mentioned_where_it_is_narrower():
    """Eight questions at total 4: ±4.1 in one report; at total 2 sampling is better."""
    output = " ".join(survey_run(total="4").output.split())
    assert "In one half-space, q1 and 7 more would make the typical margin ±4.1: declare" in output
    assert "half-space" not in survey_run(total="2").output
    crossed = " ".join(survey_run("--cross", "q1,q2", total="4").output.split())
    assert "In one half-space, q3 and 5 more would make" in crossed


def test_the_odds_factor_of_one_answer_can_be_limited():
    output = survey_run().output
    assert re.search(r"^ +(\* )?1 of 8 +250 +x9 +x9 ", output, re.M), output
    assert "Weak protection" not in output
    weak = survey_run("--answer-factor", "19").output
    assert "Weak protection: one answer changes the odds by up to 19." in weak
    assert survey_run("--answer-factor", "1").exit_code == 1


def test_a_definition_file_is_compared_with_its_present_design(tmp_path):
    file, chart = tmp_path / "survey.toml", tmp_path / "design.svg"
    file.write_text(DEFINITION)
    result = survey_run("--chart", str(chart), questions=str(file), total="2")
    assert result.exit_code == 0, result.output
    assert re.search(r"^ +now 3 of 3 +2,000 +x2.8 +x21 ", result.output, re.M), result.output
    assert re.search(
        r"^  ward +best, epsilon [\d.]+, intervals narrower by a factor of 1\.\d\d",
        result.output,
        re.M,
    )
    assert re.search(r"^  hours: a histogram of 5 cells, by square wave, ", result.output, re.M)
    assert "Dot: the recommended design" in " ".join(ET.parse(chart).getroot().itertext())


def test_a_design_with_a_ranking_states_the_margin_of_its_mean_ranks(tmp_path):
    file = tmp_path / "survey.toml"
    file.write_text(RANKING)
    result = survey_run(questions=str(file), total="3")
    assert result.exit_code == 0, result.output
    # 1,000 people who answer "matters" without randomization: 1.96 sqrt(15/12 / 900) = 0.07
    line = r"^  matters +first_or_order, epsilon 3, mean ranks ±(0\.\d+)$"
    margin = re.search(line, result.output, re.M)
    assert margin, result.output
    assert 0.07 < float(margin[1]) < 0.2


def with_printed_design(definition: str, output: str) -> dict[str, Any]:
    """Return a definition with the lines that `survey plan` prints, each put where it says."""
    written = tomllib.loads(definition)
    for key in ("together", "questions_per_person"):
        written.pop(key, None)
    lines = output.partition("mechanisms, privacy parameters and groups.\n")[2]
    for block in lines.split("# ")[1:]:
        place, _, toml = block.partition("\n")
        settings = tomllib.loads(toml)
        for question in (q for page in written["pages"] for q in page["questions"]):
            if question["id"] in re.sub("^in the questions? ", "", place).split(", "):
                question.pop("truth_probability", None)
                question |= settings
        if not place.startswith("in the question"):
            written |= settings
    return written


def test_the_printed_lines_of_toml_make_a_definition_with_the_recommended_design(tmp_path):
    file = tmp_path / "survey.toml"
    changed = tmp_path / "changed.json"
    for definition, arguments in (
        (DEMO.read_text(), ("--cross", "bullied,leaving")),
        (MATRIX, ()),
    ):
        file.write_text(definition)
        printed = survey_run(*arguments, questions=str(file), total="3").output
        changed.write_text(json.dumps(with_printed_design(definition, printed), default=str))
        again = survey_run(*arguments, questions=str(changed), total="3")
        assert again.exit_code == 0, again.output
        recommended = re.search(r"^ +\* (.*)$", printed, re.M)[1]
        assert re.search(r"^ +now (.*)$", again.output, re.M)[1] == recommended, printed


DEFINITION = f"""
slug = "wards"
title = "Wards"
[[pages]]
[[pages.questions]]
id = "hurt"
type = "yes_no"
text = "Were you hurt?"
epsilon = 1
[[pages.questions]]
id = "ward"
type = "single_choice"
text = "Which ward?"
epsilon = 1
options = [{", ".join(f'{{ id = "w{i}", label = "Ward {i}" }}' for i in range(20))}]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours?"
low = 0
high = 12
epsilon = 1
"""


def test_a_plan_of_a_survey_refuses_other_options_and_incomplete_requests():
    for arguments, message in (
        (("--questions", "8", "--n", "100"), "give --questions, --total and --n"),
        (("--total", "2"), "give --questions, --total and --n"),
        (
            ("--questions", "0", "--total", "2", "--n", "9"),
            "--questions 0 must be a number from 1 to 200",
        ),
        (("--questions", "8", "--total", "x", "--n", "9"), "total"),
        (("--questions", "none.toml", "--total", "2", "--n", "9"), "none.toml: cannot be read"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1, arguments
        assert message in result.output, (arguments, result.output)
    for option in ("--epsilon", "--margin", "--share", "--options"):
        result = survey_run(option, "1")
        assert result.exit_code == 1, option
        assert f"{option} plans one question" in result.output
    for pair in ("q1", "q1,q2,q3"):
        assert (
            f"--cross {pair} must be the ids of two questions" in survey_run("--cross", pair).output
        )
