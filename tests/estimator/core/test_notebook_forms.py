"""Results in notebooks: labels, DataFrame, Arrow table, chart and HTML."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from survey.errors import CountsError, DesignError, MissingPartError
from survey.estimator import crosstab, difference, independence, mean, proportions
from survey.mechanism import grr

CHANNEL, COIN = grr(3, "3/4"), grr(2, "3/4")
LABELS = ["never", "once", "often"]
COUNTS = pd.Series({"often": 500, "never": 300, "once": 200})
TABLE = pd.crosstab(
    pd.Series(["no"] * 60 + ["yes"] * 40, name="slept"),
    pd.Series((["often", "never", "once"] * 34)[:100], name="pressure"),
)


def shares():
    return proportions(COUNTS, CHANNEL, labels=LABELS)


def table():
    return crosstab(TABLE, [COIN, CHANNEL], labels=[["yes", "no"], LABELS])


def test_a_series_labelled_by_option_gives_the_estimates_of_the_ordered_counts():
    expected = proportions([300, 200, 500], CHANNEL)
    assert shares().estimate.tolist() == expected.estimate.tolist()
    other = difference(COUNTS, COUNTS.iloc[::-1] + 1, CHANNEL, labels=LABELS)
    ordered = difference([300, 200, 500], [301, 201, 501], CHANNEL)
    assert other.estimate.tolist() == ordered.estimate.tolist()
    assert other.to_pandas().index.tolist() == LABELS


def test_a_table_labelled_by_answer_is_aligned_along_both_axes():
    ordered = TABLE.loc[["yes", "no"], LABELS].to_numpy()
    assert table().estimate.tolist() == crosstab(ordered, [COIN, CHANNEL]).estimate.tolist()
    frame = table().with_labels(["yes", "no"], LABELS, names=["slept", "pressure"]).to_pandas()
    assert frame.index.names == ["slept", "pressure"]
    assert frame["estimate"].unstack()["often"]["no"] == table().estimate[1, 2]


def test_unknown_missing_and_repeated_labels_are_named():
    for counts, labels, message in (
        (COUNTS.rename({"once": "Once"}), LABELS, "an unknown label 'Once'"),
        (COUNTS.drop("once"), LABELS, "no entry for the label 'once'.*reindex"),
        (pd.concat([COUNTS, COUNTS]), LABELS, "several entries for the label 'often'"),
        (COUNTS.to_numpy(), LABELS[:2], "labels for axes of .2. entries"),
        (COUNTS.to_numpy(), ["a", "a", "b"], "must differ .found 'a'"),
    ):
        with pytest.raises(CountsError, match=message):
            proportions(counts, CHANNEL, labels=labels)
    with pytest.raises(CountsError, match="2 lists, one for each axis"):
        crosstab(TABLE, [COIN, CHANNEL], labels=[LABELS])


def test_a_frame_and_an_arrow_table_hold_labels_intervals_and_the_head():
    frame, arrow = shares().to_pandas(), shares().to_arrow()
    assert frame.index.tolist() == LABELS
    assert frame.index.name == "option"
    assert frame["conf_low"].tolist() == shares().conf_low.tolist()
    assert frame.attrs == shares().head()
    assert arrow.column("option").to_pylist() == LABELS
    assert arrow.column("conf_high").to_pylist() == shares().conf_high.tolist()
    assert arrow.schema.metadata[b"n"] == b"1000"
    single = mean([400, 600], COIN, [0, 1]).to_pandas()
    assert single["estimate"].tolist() == [mean([400, 600], COIN, [0, 1]).estimate]


@pytest.mark.slow
def test_a_chart_draws_every_interval_and_includes_zero():
    chart = shares().plot().to_dict()
    (values,) = (chart["data"]["values"],)
    assert [mark["label"] for mark in values] == LABELS
    assert [mark["conf_high"] for mark in values] == shares().conf_high.tolist()
    scales = [layer["encoding"]["x"]["scale"] for layer in chart["layer"]]
    assert scales == [{"zero": True}] * 3
    assert chart["layer"][2]["encoding"]["x"]["datum"] == 0
    panels = [mark["panel"] for mark in table().plot().to_dict()["data"]["values"]]
    assert panels == ["yes"] * 3 + ["no"] * 3


@pytest.mark.slow
def test_the_chart_of_a_mean_shows_the_range_of_the_values():
    chart = mean([400, 600], COIN, [10, 20]).plot().to_dict()
    assert [layer["encoding"]["x"]["scale"]["domain"] for layer in chart["layer"]] == [[10, 20]] * 2
    with pytest.raises(DesignError, match="Independence has no chart"):
        independence(TABLE.to_numpy()).plot()


def test_the_html_form_names_level_and_method_and_escapes_labels():
    text = proportions([3, 7], COIN, labels=["<b>", "&"])._repr_html_()
    assert "<caption>Proportions: 95% intervals, method feldman-cousins, n = 10.</caption>" in text
    assert '<th scope="row">&lt;b&gt;</th>' in text
    assert "<b>" not in text
    long = crosstab(np.full((20, 20), 5), [grr(20, "3/4")] * 2)._repr_html_()
    assert "... and 200 more rows" in long


def test_a_missing_library_is_named_with_the_extra_to_install(monkeypatch):
    for module, method in (("pandas", "to_pandas"), ("pyarrow", "to_arrow"), ("altair", "plot")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingPartError, match=r"pip install 'ldp-survey\[notebook\]'"):
            getattr(shares(), method)()
