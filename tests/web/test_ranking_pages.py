"""Rankings on the researchers' pages: the builder, a test run, results, figures and the CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.surveys import RANKING
from tests.web.researchers import send, sign_in, token

DRAFTS = "/research/drafts"


@pytest.fixture
def ada(client: Any, researcher: Any) -> Any:
    assert sign_in(client).status_code == 302
    return client


def test_a_ranking_is_built_and_test_run_and_its_mean_ranks_are_shown(ada: Any, store: Any) -> None:
    file = (io.BytesIO(RANKING.encode()), "ranking.toml")
    data = {"csrf_token": token(ada.get(f"{DRAFTS}/new")), "file": file}
    slug = ada.post(f"{DRAFTS}/file", data=data).location.rpartition("/")[2]
    for part in ("", "/preview", "/publish"):
        assert ada.get(f"{DRAFTS}/{slug}{part}").status_code == 200, part
    assert "The margin of a mean rank is ±" in ada.get(f"{DRAFTS}/{slug}/plan").text
    path = f"{DRAFTS}/{slug}/try"
    send(ada, f"{path}/make", page=path)
    assert send(ada, f"{path}/simulate", page=path, n="4000").status_code == 302
    (test_run,) = store.test_runs(slug)
    results = f"/research/surveys/{test_run.slug}/1"
    for address in (results, f"{results}/questions/matters"):
        page = ada.get(address)
        assert page.status_code == 200
        assert "Mean rank of “Pay”" in page.text
        assert "mean ranks from 1 (first) to 4 (last)" in page.text
        # The shares of first places are as 1 : 1/2 : 1/3 : 1/4, so "Pay" has 1 + 1/3 + 1/4 + 1/5.
        for true_rank in ("1.8", "2.4", "2.8", "3.0"):
            assert f"true: {true_rank}</span>" in page.text
        assert '<td class="number">1.8</td>' in page.text
    rows = list(csv.DictReader(io.StringIO(ada.get(f"{results}/estimates.csv").text)))
    ranks = [row for row in rows if row["statistic"] == "mean_rank"]
    assert [row["option_id"] for row in ranks] == ["pay", "time", "team", "safe"]
    assert all(1 <= float(row["conf_low"]) < float(row["conf_high"]) <= 4 for row in ranks)
    base = results.removesuffix("/1")
    for address in (
        f"{base}/explore/difference?question=matters",
        f"{results}/figures/matters-shares.svg",
        f"{results}/figures/matters-middle.svg",
        f"{results}/report",
        f"{results}/methods",
        f"{results}/trend",
    ):
        assert ada.get(address).status_code == 200, address
