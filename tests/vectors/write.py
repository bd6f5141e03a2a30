"""Write the vectors that bind the Python and the JavaScript mechanism to each other.

Run as `python -m tests.vectors.write`; a vector is (channel, truth, draws) -> report, where
draws are pairs [n, value] of `uniformBelow(n) = value`. The reports come from the formulas of
the design, written out here a second time, not from the code under test.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

from survey.questionnaire.definition import freeze
from survey.questionnaire.native import load
from survey.settings import Caps

HERE = Path(__file__).parent

CHANNELS = [
    (2, 1, 3, 1),
    (2, 1, 13591, 5000),
    (3, 1, 6, 1),
    (3, 1, 3, 1),
    (5, 1, 12, 1),
    (7, 1, 27182, 10000),
    (64, 1, 140007, 1111),
    (100, 1, 4294967295 - 98, 1),
    (4, 2, 3, 1),
    (6, 2, 3, 1),
    (9, 3, 5, 2),
    (16, 4, 7, 1),
]

BITS = [(1, 1, 3, 1), (5, 5, 13591, 5000), (9, 2, 2, 1), (17, 17, 4294967295, 1)]

WINDOW = {"name": "window", "k": 7, "width": 4, "stride": 3, "T": 27, "L": 10}
ONE_BIT = {"name": "one_bit", "R": 6, "T": 13591, "L": 5000}
TABLES = [
    WINDOW,
    ONE_BIT,
    {"name": "window", "k": 1000, "width": 301, "stride": 1, "T": 5, "L": 2},
    {"name": "by_distance", "weights": [900, 500, 277, 154, 85, 47]},
    {"name": "explicit", "table": [[5, 1, 2], [2, 5, 1], [1, 3, 4]]},
    {"name": "mixture", "a": 3, "first": ONE_BIT, "b": 7, "second": WINDOW},
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


def perturbed_bits(
    m: int, T: int, L: int, ticks: list[int], random_below: Any
) -> tuple[str, list[list[int]]]:
    """Each bit stays as it is for the first T of T + L draws."""
    draws = [[T + L, random_below(T + L)] for _ in range(m)]
    bits = "".join(
        str(tick if u < T else 1 - tick) for tick, (_, u) in zip(ticks, draws, strict=True)
    )
    octets = bytes(int(bits[i : i + 8].ljust(8, "0"), 2) for i in range(0, m, 8))
    return base64.urlsafe_b64encode(octets).decode().rstrip("="), draws


def table_rows(table: dict[str, Any]) -> list[list[int]]:
    """The rows of a table, weight by weight from its description."""
    match table["name"]:
        case "window":
            reports = (table["k"] - 1) * table["stride"] + table["width"]
            return [
                [
                    table["T"] if 0 <= j - i * table["stride"] < table["width"] else table["L"]
                    for j in range(reports)
                ]
                for i in range(table["k"])
            ]
        case "one_bit":
            R, T, L = table["R"], table["T"], table["L"]
            return [[(R - x) * T + x * L, x * T + (R - x) * L] for x in range(R + 1)]
        case "by_distance":
            weights, last = table["weights"], len(table["weights"]) - 1
            rows = []
            for i in range(last + 1):
                row = [0] * (last + 1)
                for z in range(-last, last + 1):
                    row[min(max(i + z, 0), last)] += weights[abs(z)]
                rows.append(row)
            return rows
        case "explicit":
            return list(table["table"])
        case _:
            first, second = table_rows(table["first"]), table_rows(table["second"])
            return [
                [table["a"] * w for w in one] + [table["b"] * w for w in other]
                for one, other in zip(first, second, strict=True)
            ]


def with_silence(rows: list[list[int]], silent: int) -> list[list[int]]:
    """The rows of "prefer not to say" and "does not apply" by the design's rule, in fractions."""
    columns = list(zip(*rows, strict=True))
    rho = max(Fraction(max(column), min(column)) for column in columns)
    others = math.floor((sum(rows[0]) - sum(map(min, columns))) / (rho - 1))
    own = math.floor(rho * others)
    row = [min(column) for column in columns]
    for j, column in enumerate(columns):
        row[j] += min(max(column) - row[j], sum(rows[0]) + others - own - sum(row))
    extended = [[*plain, *[others] * silent] for plain in rows]
    return extended + [
        [*row, *(own if i == j else others for j in range(silent))] for i in range(silent)
    ]


def table_vectors(rng: random.Random) -> list[dict[str, Any]]:
    vectors = []
    for table in TABLES:
        for silent in (0, 1, 2):
            rows = table_rows(table)
            rows = with_silence(rows, silent) if silent else rows
            channel = {"kind": "weight_table", "table": table, "no_answers": silent}
            for truth in {0, len(rows) - 1, rng.randrange(len(rows)), len(rows) // 2}:
                total = sum(rows[truth])
                for u in (0, total - 1, rng.randrange(total)):
                    partial = list(itertools.accumulate(rows[truth]))
                    vectors.append(
                        {
                            "channel": channel,
                            "truth": truth,
                            "draws": [[total, u]],
                            "report": sum(u >= reached for reached in partial),
                        }
                    )
    return vectors


def bit_vectors(rng: random.Random) -> list[dict[str, Any]]:
    vectors = []
    for m, s, T, L in BITS:
        for _ in range(8):
            ticked = rng.sample(range(m), rng.randint(0, s))
            ticks = [int(option in ticked) for option in range(m)]
            report, draws = perturbed_bits(m, T, L, ticks, rng.randrange)
            vectors.append(
                {
                    "channel": {"kind": "bit_vector", "m": m, "s": s, "T": T, "L": L},
                    "truth": ticks,
                    "draws": draws,
                    "report": report,
                }
            )
    return vectors


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
    return vectors + bit_vectors(rng) + table_vectors(rng)


def report_vectors() -> list[dict[str, Any]]:
    """Whole bodies: canonical definition, answers, draws, id bytes -> the bytes sent."""
    rng = random.Random(20261122)
    definition = freeze(load(DEFINITION, "vector.toml", Caps()), 1)
    vectors = []
    for answers in ({"first": 0, "second": 2}, {"first": 1, "second": 0}, {"second": 1}):
        draws, codes = [], []
        for question, opt_out in (("first", 2), ("second", None)):
            channel = definition.questions[len(codes)].channel
            code, used = perturbed(
                channel.k, 1, channel.T, channel.L, answers.get(question, opt_out), rng.randrange
            )
            draws += used
            codes.append(code)
        octets = rng.randbytes(16)
        report_id = base64.urlsafe_b64encode(octets).decode().rstrip("=")
        start = (
            f'{{"definition":"{definition.sha256}","report_id":"{report_id}","stratum":"",'
            f'"codes":[{",".join(map(str, codes))}],"invitation":"","pad":"'
        )
        body = start + "." * (definition.report_bytes - len(start) - 2) + '"}'
        vectors.append(
            {
                "canonical": definition.canonical.decode("utf-8"),
                "id": definition.sha256,
                "answers": answers,
                "draws": draws,
                "id_bytes": list(octets),
                "body": body,
            }
        )
    return vectors


def main() -> None:
    for name, vectors in (("mechanism", mechanism_vectors()), ("report", report_vectors())):
        lines = ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors)
        (HERE / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
