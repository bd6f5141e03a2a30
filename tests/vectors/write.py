"""Write the vectors that bind the Python and the JavaScript mechanism to each other.

Run as `python -m tests.vectors.write`; a vector is (channel, truth, draws) -> report, where
draws are pairs [n, value] of `uniformBelow(n) = value`. The reports come from the formulas of
the design, written out here a second time, not from the code under test.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

from survey.questionnaire.definition import freeze
from survey.questionnaire.native import load
from survey.settings import Caps

HERE = Path(__file__).parent

CHANNELS = [
    (2, 1, 3, 1), (2, 1, 13591, 5000), (3, 1, 6, 1), (3, 1, 3, 1), (5, 1, 12, 1),
    (7, 1, 27182, 10000), (64, 1, 140007, 1111), (100, 1, 4294967295 - 98, 1),
    (4, 2, 3, 1), (6, 2, 3, 1), (9, 3, 5, 2), (16, 4, 7, 1),
]

DEFINITION = b"""
slug = "vector"
title = "Vector \xe2\x80\x93 \xc3\xa9\xc3\xb1\xd8\xb9"
truth_probability = "3/4"
[[questions]]
id = "first"
type = "yes_no"
text = "First?"
[[questions]]
id = "second"
type = "single_choice"
text = "Second?"
prefer_not_to_say = false
options = [{id = "a", label = "A"}, {id = "b", label = "B"}, {id = "c", label = "C"}]
"""


def perturbed(
    k: int, d: int, T: int, L: int, truth: int, random_below: Any
) -> tuple[int | str, list[list[int]]]:
    """One report and the draws it took, by the design's description."""
    draws: list[list[int]] = []

    def below(n: int) -> int:
        draws.append([n, random_below(n)])
        return draws[-1][1]

    if d == 1:
        u = below(T + (k - 1) * L)
        # T values of u keep the truth; the next L name the option after it, and so on round.
        offset = 0
        u -= T
        while u >= 0:
            offset += 1
            u -= L
        return (truth + offset) % k, draws
    left = list(range(1, k))
    chosen = []
    for i in range(d):
        j = i + below(k - 1 - i)
        left[i], left[j] = left[j], left[i]
        chosen.append(left[i])
    if below(d * T + (k - d) * L) < d * T:
        chosen[-1] = 0
    members = {(truth + offset) % k for offset in chosen}
    bits = "".join("1" if option in members else "0" for option in range(k))
    octets = bytes(int(bits[i : i + 8].ljust(8, "0"), 2) for i in range(0, k, 8))
    return base64.urlsafe_b64encode(octets).decode().rstrip("="), draws


def interesting(k: int, d: int, T: int, L: int, rng: random.Random) -> Any:
    """A source of draws that also visits the edges of every range."""
    edges = iter([0, T - 1, T, T + L - 1, T + L, T + (k - 1) * L - 1] if d == 1 else [])

    def below(n: int) -> int:
        edge = next(edges, None)
        return edge if edge is not None and edge < n else rng.randrange(n)

    return below


def mechanism_vectors() -> list[dict[str, Any]]:
    rng = random.Random(20261121)
    vectors = []
    for k, d, T, L in CHANNELS:
        channel = {"kind": "subset_selection", "k": k, "d": d, "T": T, "L": L}
        below = interesting(k, d, T, L, rng)
        for _ in range(12):
            truth = rng.randrange(k)
            report, draws = perturbed(k, d, T, L, truth, below)
            vectors.append({"channel": channel, "truth": truth, "draws": draws, "report": report})
    return vectors


def report_vectors() -> list[dict[str, Any]]:
    """Whole bodies: canonical definition, answers, draws, id bytes -> the bytes sent."""
    rng = random.Random(20261122)
    definition = freeze(load(DEFINITION, "vector.toml", Caps()), 1)
    vectors = []
    for answers in ({"first": 0, "second": 2}, {"first": 1, "second": 0}, {"second": 1}):
        draws, codes = [], []
        for question, opt_out in (("first", 2), ("second", None)):
            channel = definition.questions[len(codes)].channel
            code, used = perturbed(channel.k, 1, channel.T, channel.L,
                                   answers.get(question, opt_out), rng.randrange)
            draws += used
            codes.append(code)
        octets = rng.randbytes(16)
        report_id = base64.urlsafe_b64encode(octets).decode().rstrip("=")
        start = (f'{{"definition":"{definition.sha256}","report_id":"{report_id}","stratum":"",'
                 f'"codes":[{",".join(map(str, codes))}],"invitation":"","pad":"')
        body = start + "." * (definition.report_bytes - len(start) - 2) + '"}'
        vectors.append({
            "canonical": definition.canonical.decode("utf-8"), "id": definition.sha256,
            "answers": answers, "draws": draws, "id_bytes": list(octets), "body": body,
        })
    return vectors


def main() -> None:
    for name, vectors in (("mechanism", mechanism_vectors()), ("report", report_vectors())):
        lines = ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors)
        (HERE / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
