"""`survey plan`: the numbers, the charts, and one clear line for what cannot be."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.estimator import margin_of, power, required_n_difference, simulated_grid, tradeoff
from survey.results.plan.chart import grid_specification, tradeoff_specification


def run(*arguments: str):
    return CliRunner().invoke(main, ["plan", *arguments])


def test_reports_are_found_from_epsilon_and_margin():
    found = run("--epsilon", "1", "--margin", "0.03")
    assert found.exit_code == 0
    assert re.search(r"^reports +4,997$", found.output, re.M)
    assert re.search(r"^margin +±3.00 points at level 0.95$", found.output, re.M)
    assert "probability 0.731" in found.output


def test_a_population_makes_them_fewer():
    found = run("--epsilon", "1", "--margin", "0.03", "--population", "5000")
    assert re.search(r"^reports +4,118 of 5,000 people$", found.output, re.M)


def test_the_margin_is_found_from_epsilon_and_n_and_split():
    found = run("--epsilon", "1", "--n", "4997")
    assert re.search(r"^margin +±3.00 points", found.output, re.M)
    sampling, privacy = (
        float(re.search(rf"{name} +±([\d.]+)", found.output)[1]) for name in ("sampling", "privacy")
    )
    assert np.hypot(sampling, privacy) == pytest.approx(3.0, abs=0.01)


def test_epsilon_is_found_from_n_and_margin():
    found = run("--n", "4997", "--margin", "0.03", "--options", "2")
    assert found.exit_code == 0
    assert re.search(r"^epsilon +(1|1\.000|0\.9999),", found.output, re.M)


def test_the_table_has_a_row_per_epsilon_and_a_column_per_number_of_reports():
    found = run("--options", "4", "--share", "0.2", "--epsilon", "1.25")
    assert found.exit_code == 0
    head = next(line for line in found.output.splitlines() if line.startswith(" epsilon"))
    sizes = [int(size.replace(",", "")) for size in re.findall(r"n=([\d,]+)", head)]
    assert sizes == [100, 500, 1000, 2000, 5000, 10_000]
    row = next(line for line in found.output.splitlines() if line.startswith("    1.25"))
    expected = [f"±{100 * margin_of(n, epsilon=1.25, k=4, share=0.2).margin:.1f}" for n in sizes]
    assert row.split()[2:] == expected


def test_two_groups_are_compared_with_the_chance_to_find_their_difference():
    found = run("--epsilon", "1", "--n", "500", "--share", "0.2", "--against", "0.4")
    rows = found.output.split("Power in per cent to detect the difference")[1].splitlines()
    assert rows[2].split()[2:4] == ["n=100", "n=500"]
    one = next(row for row in rows if row.startswith("       1 ")).split()
    assert one[3] == f"{100 * power(500, 500, 0.2, 0.4, epsilon=1).power:.0f}"
    assert one[-1] == f"{required_n_difference(0.2, 0.4, epsilon=1).n_a:,}"
    assert one[-2] == ">99"


def test_groups_that_do_not_differ_are_not_compared():
    found = run("--share", "0.2", "--against", "0.2")
    assert found.exit_code == 1
    assert "no number of reports tells them apart" in found.output


def test_without_any_wish_there_is_the_table():
    found = run()
    assert found.exit_code == 0
    assert "Margin of error in points" in found.output


def test_headings_of_the_largest_surveys_stand_apart():
    lines = run("--n", "10000000000", "--epsilon", "1").output.splitlines()
    head, *rows = lines[next(i for i, line in enumerate(lines) if line.startswith(" epsilon")) :]
    assert head.split()[-2:] == ["n=10,000", "n=10,000,000,000"]
    assert {len(line) for line in (head, *rows)} == {len(head)}
    assert {len(re.split("  +", line.strip())) for line in (head, *rows)} == {9}


def test_the_smallest_margins_keep_their_digits(tmp_path):
    file = tmp_path / "chart.svg"
    found = run("--n", "10000000000", "--epsilon", "1", "--chart", str(file))
    assert re.search(r"^margin +±0.0021 points", found.output, re.M)
    assert re.search(r"^  sampling +±0.00098 points", found.output, re.M)
    assert "±0.0 " not in found.output + " "
    assert "±0.002 points" in "".join(ET.fromstring(file.read_text(encoding="utf-8")).itertext())
    refused = run("--n", "10000000000", "--margin", "0.000001")
    assert refused.stderr == (
        "survey: not possible with 10,000,000,000 reports at any epsilon; "
        "the smallest possible margin is 0.00000980\n"
    )


def test_few_people_are_the_last_column():
    head = run("--population", "3000").output.splitlines()[1]
    assert head.split()[-1] == "n=3,000"
    assert "n=5,000" not in head


def test_the_charts_are_written_as_svg_and_png(tmp_path):
    chart, grid = tmp_path / "chart.svg", tmp_path / "grid.PNG"
    found = run(
        "--epsilon", "1", "--margin", "0.03", "--chart", str(chart), "--grid", str(grid)
    )  # fmt: skip
    assert found.exit_code == 0
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


def test_charts_leave_out_margins_that_say_nothing_and_clip_wild_estimates():
    specification = tradeoff_specification(tradeoff([0.01, 1, 10], [100, 1000]))
    lines = specification["layer"][0]["data"]["values"]
    assert max(row["margin"] for row in lines) <= 0.5
    grid = grid_specification(simulated_grid(np.random.default_rng(1)))
    points = grid["data"]["values"]
    assert {point["outside"] for point in points} >= {"no", "above"}
    assert all(-0.5 <= point["low"] <= point["high"] <= 1.5 for point in points)


def test_a_margin_no_population_can_reach_is_refused_with_the_smallest_there_is():
    found = run("--epsilon", "1", "--margin", "0.03", "--population", "2000")
    assert found.exit_code == 1
    assert found.stderr == (
        "survey: not possible at this epsilon; the smallest possible margin is 0.0421\n"
    )
    assert found.stdout.startswith("The nearest possible plan:\nreports        2,000 of 2,000")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
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
    ],
)
def test_a_bad_value_is_one_clear_line_and_exit_1(arguments, words):
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("survey: ")
    assert len(refused.stderr.splitlines()) == 1
    assert words in refused.stderr


def test_what_is_no_number_is_wrong_usage():
    assert run("--epsilon", "much").exit_code == 2
    assert run("--n", "1.5").exit_code == 2
