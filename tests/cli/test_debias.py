"""`survey debias`: estimates from a plain table that another system collected."""

from __future__ import annotations

import csv
import io
import json
from zipfile import ZipFile

import numpy as np
import pytest
from click.testing import CliRunner

from survey.cli import main
from survey.collect.publication import publish
from survey.estimator import proportions
from survey.mechanism import BitVector, grr
from survey.mechanism.numeric import geometric
from survey.mechanism.randomized_response import unrelated_question, warner
from survey.questionnaire.loading import load
from survey.results.estimates.result import ResultCache
from survey.results.exports.microdata import write_microdata
from survey.settings import Caps
from tests.browser.research import add_released
from tests.conftest import SMALL, TODAY

ANSWERS = ["never", "once", "often, or more"]
COUNTS = {"never": 50, "often, or more": 30, "once": 20}
REPORTS = [label for label, n in COUNTS.items() for _ in range(n)]
REGIONS = ["north", "south"] * 50
LABELS = ("--labels", 'never,once,"often, or more"')
GRR = ("--channel", "grr:k=3,p=0.75", "--column", "slept")
COIN = ("--channel", "grr:k=2,p=0.75")


def table(columns: dict[str, list[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


TABLE = table({"region": REGIONS, "slept": REPORTS})


@pytest.fixture
def run(tmp_path):
    def run_debias(text, *arguments):
        file = tmp_path / "table.csv"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return CliRunner().invoke(main, ["debias", str(file), *map(str, arguments)])

    return run_debias


def rows_of(result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_labels_are_counted_and_estimated_as_by_the_library(run):
    expected = proportions([50, 20, 30], grr(3, "0.75"), level=0.9)
    rows = rows_of(run(TABLE, *GRR, *LABELS, "--level", 0.9, "--json"))
    assert [row["option_label"] for row in rows] == ANSWERS
    for name in ("estimate", "mle", "std_error", "conf_low", "conf_high", "n_effective"):
        assert [row[name] for row in rows] == getattr(expected, name).tolist()
    constant = {(row["question_id"], row["n_reports"], row["conf_level"]) for row in rows}
    assert constant == {("slept", 100, 0.9)}
    printed = run(TABLE, *GRR, *LABELS).output
    assert "slept: 100 reports, 95% intervals (feldman-cousins), epsilon 1.792" in printed
    assert "often, or more  estimated" in printed


def test_each_group_is_estimated_from_its_own_rows(run):
    rows = rows_of(run(TABLE, *GRR, *LABELS, "--by", "region", "--json"))
    for region in ("north", "south"):
        places = [place for place, name in enumerate(REGIONS) if name == region]
        reports = [REPORTS[place] for place in places]
        expected = proportions([reports.count(answer) for answer in ANSWERS], grr(3, "0.75"))
        estimates = [row["estimate"] for row in rows if row["stratum"] == region]
        assert estimates == expected.estimate.tolist()
    as_csv = run(TABLE, *GRR, *LABELS, "--by", "region", "--csv").output
    assert len(list(csv.DictReader(io.StringIO(as_csv)))) == 6


def test_codes_bits_and_tables_are_read_by_a_channel_in_json(run, tmp_path):
    rng = np.random.default_rng(3)
    bits, noise = BitVector(2, 2, 3, 1), geometric(4, 2)
    ticks = bits.perturb(rng.integers(0, 2, (80, 2)), rng)
    codes = noise.perturb(rng.integers(0, 4, 80), rng)
    for channel, cells, expected in (
        (bits, [" ".join(map(str, row)) for row in ticks], proportions(ticks.sum(0), bits, n=80)),
        (noise, list(map(str, codes)), proportions(np.bincount(codes, minlength=4), noise)),
    ):
        file = tmp_path / "channel.json"
        file.write_text(json.dumps(channel.to_json()))
        rows = rows_of(run(table({"q": cells}), "--channel", file, "--json"))
        assert [row["estimate"] for row in rows] == expected.estimate.tolist()


def test_the_table_of_an_export_gives_the_estimates_of_the_results_page(
    run, store, small, tmp_path
):
    add_released(store, small, 3000)
    file = io.BytesIO()
    write_microdata(file, store, small)
    with ZipFile(file) as archive:
        reports, channels = archive.read("reports.csv"), archive.read("channels.json")
    (tmp_path / "channels.json").write_bytes(channels)
    rows = rows_of(run(reports, "--channel", tmp_path / "channels.json", "--json"))
    page = [row for row in ResultCache(store).result(small).rows if row.base == "all"]
    assert [row["estimate"] for row in rows] == [row.estimate for row in page]
    assert [row["option_label"] for row in rows] == [row.option_label for row in page]


def test_an_export_with_questions_without_shares_names_those_that_are_left_out(
    run, store, tmp_path
):
    extra = """
[[pages]]
[[pages.questions]]
id = "order"
type = "ranking"
text = "In which order?"
epsilon = 2
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
[[pages.questions]]
id = "hours"
type = "number"
text = "How many hours?"
low = 0
high = 10
mechanism = "one_bit"
epsilon = 2
"""
    survey = publish(store, load((SMALL + extra).encode(), "s.toml", Caps()), TODAY)
    add_released(store, survey, 3000)
    file = io.BytesIO()
    write_microdata(file, store, survey)
    with ZipFile(file) as archive:
        reports = archive.read("reports.csv")
        (tmp_path / "channels.json").write_bytes(archive.read("channels.json"))
    options = ("--channel", tmp_path / "channels.json", "--json")
    result = run(reports, *options)
    assert {row["question_id"] for row in rows_of(result)} == {"fell_asleep", "pressure"}
    assert [line.split(" has ")[0] for line in result.stderr.splitlines()] == [
        "left out: order",
        "left out: hours",
    ]
    for names in (("order",), ("pressure", "order")):
        columns = [word for name in names for word in ("--column", name)]
        refused = run(reports, *options, *columns)
        assert refused.exit_code == 1, names
        assert "order has no shares to estimate here: its reports name orders" in refused.output


def test_mechanisms_in_one_line_are_those_of_the_library(run):
    text = table({"q": ["0"] * 60 + ["1"] * 40})
    for channel, same in (
        ("warner:p=0.7", warner("0.7")),
        ("two_coins:truth=1/2,yes=1/2", grr(2, "3/4")),
        ("unrelated_question:p=3/4,prevalence=1/12", unrelated_question("3/4", "1/12")),
    ):
        rows = rows_of(run(text, "--channel", channel, "--json"))
        expected = proportions([60, 40], same).estimate.tolist()
        assert [row["estimate"] for row in rows] == expected, channel
    assert rows_of(run(text, "--channel", "grr:k=2,epsilon=1", "--json"))[0]["epsilon"] <= 1


def test_other_delimiters_and_byte_order_marks_are_read(run):
    text = "\ufeffslept;n\r\nonce;1\r\n\r\nnever;2\r\n"
    options = (*COIN, "--labels", "never,once", "--delimiter", ";", "--column", "slept", "--json")
    assert [row["n_reports"] for row in rows_of(run(text, *options))] == [2, 2]


def test_empty_cells_are_left_out_only_on_request_and_with_their_number(run):
    text = table({"q": ["0", "", "1", ""]})
    refused = run(text, *COIN)
    assert (refused.exit_code, "row 3: q = '' is empty" in refused.output) == (1, True)
    allowed = run(text, *COIN, "--skip-empty", "--json")
    assert rows_of(allowed)[0]["n_reports"] == 2
    assert allowed.stderr == "left out 2 empty cells\n"


def test_errors_name_the_row_the_value_and_what_would_be_right(run, tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("[1]")
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 200_000)
    two, one = table({"a": ["0"], "b": ["1"]}), table({"q": ["0", "x"]})
    cases = (
        (TABLE, (*GRR, "--labels", "never,once,x"), "row 52: slept = 'often, or more' must be one"),
        (TABLE, GRR, "row 2: slept = 'never' must be an integer from 0 to 2; name the answers"),
        (TABLE, (*GRR, "--labels", "never,once"), "slept has 2 labels; its channel needs 3"),
        (one, COIN, "row 3: q = 'x' must be an integer from 0 to 1"),
        (one, ("--channel", "rappor:k=2"), "must be a JSON file, or one of grr:k=..."),
        (one, ("--channel", "grr:k=2"), "needs either p or epsilon"),
        (one, ("--channel", "grr:p=0.7"), "lacks one of k, epsilon"),
        (one, ("--channel", "grr:k=2,p=0.5"), "0.5"),
        (one, ("--channel", "grr:k=2,q=0.5"), "'q=0.5' must be one of k=..., p=..., epsilon=..."),
        (one, ("--channel", broken), "must be a channel, or the channels.json"),
        (one, ("--channel", deep), "deep.json is not JSON"),
        (one, ("--channel", tmp_path / "none.json"), "No such file"),
        (two, COIN, "name a column with --column: a, b"),
        (two, (*COIN, "--column", "c"), "no column 'c': its columns are a, b"),
        ("a,b\n1\n", (*COIN, "--column", "a"), "row 2 has 1 cells, the header 2"),
        ("q\n", COIN, "a header, but no rows"),
        ("q,q\n1,1\n", (*COIN, "--column", "q"), "several columns 'q'"),
        (b"q\n\xff\n", COIN, "not UTF-8"),
        ('q\n"0\n', COIN, "not CSV"),
        (TABLE, (*GRR, *LABELS, "--by", "slept", "--level", "2"), "level = 2 must be from"),
    )
    for text, arguments, message in cases:
        result = run(text, *arguments)
        assert result.exit_code in (1, 2), (arguments, result.output)
        assert message in result.output, (arguments, result.output)
