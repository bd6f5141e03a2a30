"""Write the vectors that bind the Python and the JavaScript mechanism to each other.

Run as `python -m tests.vectors.write`; a vector is (channel, truth, draws) -> report, where
draws are pairs [n, value] of `uniformBelow(n) = value`. The reports come from the formulas of
the design, written out here a second time, not from the code under test.
"""

from __future__ import annotations

import base64
import bisect
import itertools
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.surveys import (
    EVERY_DESIGN,
    ITEMS,
    JOINT,
    MATRIX,
    ONE_REPORT,
    PIPED,
    TWO_CHOICES,
    publish,
)

FOLDER = Path(__file__).parent

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

BITS = [
    # m, s, alone, sampled, T, L
    (1, 1, 0, 1, 3, 1),
    (5, 5, 0, 5, 13591, 5000),
    (9, 2, 1, 9, 2, 1),
    (17, 17, 0, 17, 4294967295, 1),
    (7, 5, 2, 1, 27182, 10000),
    (6, 2, 3, 4, 3, 1),
]

SPACES = [
    # m, s, alone, agreements, near, far
    (1, 1, 0, 1, 3, 1),
    (4, 4, 0, 3, 2, 1),
    (5, 2, 1, 4, 1, 2),
    (10, 10, 0, 8, 6317, 2000),
    (17, 4, 2, 9, 4294967295, 1),
    (32, 30, 1, 27, 46011, 5000),
    (32, 32, 0, 32, 7, 9),
]

WINDOW = {"name": "window", "k": 7, "width": 4, "stride": 3, "T": 27, "L": 10}
ONE_BIT = {"name": "one_bit", "R": 6, "T": 13591, "L": 5000}
TABLES = [
    WINDOW,
    ONE_BIT,
    {"name": "window", "k": 1000, "width": 301, "stride": 1, "T": 5, "L": 2},
    {"name": "by_distance", "weights": [900, 500, 277, 154, 85, 47]},
    {"name": "explicit", "table": [[5, 1, 2], [2, 5, 1], [1, 3, 4]]},
    {"name": "mixture", "a": 3, "first": ONE_BIT, "b": 7, "second": WINDOW},
    {"name": "first_or_order", "m": 3, "size": 3, "a": 0, "b": 1, "T": 7389, "L": 1000},
    {"name": "first_or_order", "m": 5, "size": 3, "a": 47, "b": 7, "T": 40171, "L": 2000},
    {"name": "first_or_order", "m": 6, "size": 2, "a": 59, "b": 10, "T": 13591, "L": 5000},
]

LABELLED = [
    (2, 1, 3, 1),
    (3, 1, 6, 1),
    (3, 1, 3, 1),
    (5, 1, 12, 1),
    (5, 1, 14, 5),
    (2, 1, 99, 1),
    (7, 1, 20001, 20000),
    (12, 3, 3, 1),
    (64, 17, 27182, 10000),
    (64, 1, 140007, 1111),
    (10000, 1, 162754, 1),
    (6, 1, 19, 7),
    (4, 2, 3, 1),
    (4, 1, 1663, 1000),
    (8, 2, 31, 9),
]
"""k, d, T, L of single choices with a label in the vectors."""

PRIORS = (Fraction(1, 10), Fraction(1, 2))

ANSWERS = (
    {
        "works": 0,
        "coins": 1,
        "places": [0, 2],
        "hours": 24,
        "why": [4],
        "which": [0, 1, 2],
        "since": 52,
        "mood": 10,
        "group": 7,
        "order": [2, 0, 3, 1],
    },
    {"works": 1, "why": [0, 3], "which": [4], "places": [3], "mood": 11, "since": 53, "order": 4},
    {"why": [0, 1, 2, 3], "group": 0, "coins": 2, "which": [3], "hours": 3},
)
"""Answers as the client stores them; "hours" is shown only if "works" is 0 (yes)."""


def perturbed(
    k: int, d: int, T: int, L: int, truth: int, random_below: Any
) -> tuple[int | str, list[list[int]]]:
    """Return one report and its draws, by the description of the design."""
    draws: list[list[int]] = []

    def below(n: int) -> int:
        draws.append([n, random_below(n)])
        return draws[-1][1]

    if d == 1:
        u = below(T + (k - 1) * L)
        # T values of u keep the truth, the next L give the following option, and so on.
        offset = 0
        u -= T
        while u >= 0:
            offset += 1
            u -= L
        return (truth + offset) % k, draws
    deck = list(range(1, k))
    offsets = []
    for i in range(d):
        j = i + below(k - 1 - i)
        deck[i], deck[j] = deck[j], deck[i]
        offsets.append(deck[i])
    if below(d * T + (k - d) * L) < d * T:
        offsets[-1] = 0
    members = {(truth + offset) % k for offset in offsets}
    bits = "".join("1" if option in members else "0" for option in range(k))
    octets = bytes(int(bits[i : i + 8].ljust(8, "0"), 2) for i in range(0, k, 8))
    return base64.urlsafe_b64encode(octets).decode().rstrip("="), draws


def perturbed_bits(
    m: int, sampled: int, T: int, L: int, ticks: list[int], random_below: Any
) -> tuple[str, list[list[int]]]:
    """Return one report and its draws; T of T + L draws keep a sampled bit."""
    deck, draws = list(range(m)), []
    for i in range(sampled if sampled < m else 0):
        draws.append([m - i, random_below(m - i)])
        j = i + draws[-1][1]
        deck[i], deck[j] = deck[j], deck[i]
    bits = ["0"] * m
    for option in deck[:sampled]:
        draws.append([T + L, random_below(T + L)])
        bits[option] = str(ticks[option] if draws[-1][1] < T else 1 - ticks[option])
    mask = ["1" if option in deck[:sampled] else "0" for option in range(m)]
    text = "".join([*mask, *bits] if sampled < m else bits)
    octets = bytes(int(text[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(text), 8))
    return base64.urlsafe_b64encode(octets).decode().rstrip("="), draws


def perturbed_together(
    channel: dict[str, int], ticks: list[int], random_below: Any
) -> tuple[str, list[list[int]]]:
    """Return one report and its draws, with the bits packed."""
    m = channel["m"]
    reported, draws = vector_together(channel, ticks, random_below)
    number = int("".join(map(str, reported)), 2)
    octets = (number << -m % 8).to_bytes((m + 7) // 8, "big")
    return base64.urlsafe_b64encode(octets).decode().rstrip("="), draws


def vector_together(
    channel: dict[str, int], ticks: list[int], random_below: Any
) -> tuple[list[int], list[list[int]]]:
    """Return the bits of one report, and its draws: near or not, one near and one other vector.

    The vectors with at least `agreements` ones, written as numbers, are in descending order. Ones
    are the right bits of a near report, and the wrong bits of another.
    """
    m, near, far = channel["m"], channel["near"], channel["far"]
    least = {True: channel["agreements"], False: m - channel["agreements"] + 1}
    sizes = [near + far, *(numbers_from(0, m, least[is_near]) for is_near in (True, False))]
    draws = [[n, random_below(n)] for n in sizes]
    is_near = draws[0][1] < near
    rank = draws[1 if is_near else 2][1]
    number = (
        bisect.bisect_left(
            range(2**m), True, key=lambda x: numbers_from(x, m, least[is_near]) <= rank
        )
        - 1
    )
    truth = int("".join(map(str, ticks)), 2)
    reported = truth ^ number ^ (2**m - 1) if is_near else truth ^ number
    return [int(bit) for bit in f"{reported:0{m}b}"], draws


def numbers_from(x: int, m: int, least: int) -> int:
    """Count the numbers from x to 2^m - 1 that have at least `least` ones."""
    count = int(x.bit_count() >= least)
    for bit in range(m):
        if not x >> bit & 1:
            # The same bits above this one, a one here, and anything below.
            ones = (x >> bit).bit_count() + 1
            count += sum(math.comb(bit, more) for more in range(bit + 1) if ones + more >= least)
    return count


def space_vectors(rng: random.Random) -> list[dict[str, Any]]:
    vectors = []
    for m, s, alone, agreements, near, far in SPACES:
        channel = {"kind": "half_space", "m": m, "s": s, "alone": alone}
        channel |= {"agreements": agreements, "near": near, "far": far}
        for pick in (lambda n: 0, lambda n: n - 1, *[rng.randrange] * 6):
            ticks = tick_pattern(m, s, alone, rng)
            report, draws = perturbed_together(channel, ticks, pick)
            vectors.append({"channel": channel, "truth": ticks, "draws": draws, "report": report})
    return vectors


def tick_pattern(m: int, s: int, alone: int, rng: random.Random) -> list[int]:
    """Return some ordinary ticks, or one tick of an exclusive option."""
    ordinary = rng.sample(range(m - alone), rng.randint(0, s))
    ticked = [rng.randrange(m - alone, m)] if alone and rng.random() < 0.3 else ordinary
    return [int(option in ticked) for option in range(m)]


def ranking_rows(m: int, size: int, a: int, b: int, T: int, L: int) -> list[list[int]]:
    """Return the rows of a table for rankings: T where a report agrees with the ranking."""
    rows = []
    for ranking in itertools.permutations(range(m)):
        firsts = [a * (T if option == ranking[0] else L) for option in range(m)] if a else []
        orders = [
            b * (T if [x for x in ranking if x in order] == list(order) else L)
            for order in itertools.permutations(range(m), size)
        ]
        rows.append([*firsts, *orders])
    return rows


def table_rows(table: dict[str, Any]) -> list[list[int]]:
    """Return the rows of a table, weight by weight from its description."""
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
        case "first_or_order":
            return ranking_rows(**{key: table[key] for key in ("m", "size", "a", "b", "T", "L")})
        case _:
            first, second = table_rows(table["first"]), table_rows(table["second"])
            return [
                [table["a"] * w for w in first_row] + [table["b"] * w for w in second_row]
                for first_row, second_row in zip(first, second, strict=True)
            ]


def with_no_answers(rows: list[list[int]], no_answers: int) -> list[list[int]]:
    """Add the rows of "prefer not to say" and "does not apply" by the design's rule."""
    columns = list(zip(*rows, strict=True))
    rho = max(Fraction(max(column), min(column)) for column in columns)
    total_of_others = math.floor((sum(rows[0]) - sum(map(min, columns))) / (rho - 1))
    weight = math.floor(rho * total_of_others)
    row = [min(column) for column in columns]
    for j, column in enumerate(columns):
        row[j] += min(max(column) - row[j], sum(rows[0]) + total_of_others - weight - sum(row))
    extended = [[*plain, *[total_of_others] * no_answers] for plain in rows]
    return extended + [
        [*row, *(weight if i == j else total_of_others for j in range(no_answers))]
        for i in range(no_answers)
    ]


def table_vectors(rng: random.Random) -> list[dict[str, Any]]:
    vectors = []
    for table in TABLES:
        for no_answers in (0, 1, 2):
            channel = {"kind": "weight_table", "table": table, "no_answers": no_answers}
            rows = rows_of(channel)
            for truth in {0, len(rows) - 1, rng.randrange(len(rows)), len(rows) // 2}:
                total = sum(rows[truth])
                for u in (0, total - 1, rng.randrange(total)):
                    partial = list(itertools.accumulate(rows[truth]))
                    vectors.append(
                        {
                            "channel": channel,
                            "truth": truth,
                            "draws": [[total, u]],
                            "report": sum(u >= weight for weight in partial),
                        }
                    )
    return vectors


def bit_vectors(rng: random.Random) -> list[dict[str, Any]]:
    vectors = []
    for m, s, alone, sampled, T, L in BITS:
        channel = {"kind": "bit_vector", "m": m, "s": s, "alone": alone, "sampled": sampled}
        for _ in range(8):
            ticks = tick_pattern(m, s, alone, rng)
            report, draws = perturbed_bits(m, sampled, T, L, ticks, rng.randrange)
            vectors.append(
                {
                    "channel": {**channel, "T": T, "L": L},
                    "truth": ticks,
                    "draws": draws,
                    "report": report,
                }
            )
    return vectors


def edges_first(k: int, d: int, T: int, L: int, rng: random.Random) -> Any:
    """Return a source of draws that begins with the edges of every range."""
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
        below = edges_first(k, d, T, L, rng)
        for _ in range(12):
            truth = rng.randrange(k)
            report, draws = perturbed(k, d, T, L, truth, below)
            vectors.append({"channel": channel, "truth": truth, "draws": draws, "report": report})
    return vectors + bit_vectors(rng) + table_vectors(rng) + space_vectors(rng)


def patterns_of(question: dict[str, Any]) -> list[tuple[int, ...]]:
    """Return the answers to a multiple choice: sets by their bit mask, then exclusive options."""
    ordinary = len(question["options"]) - question["alone"]
    masks = [m for m in range(1, 2**ordinary) if m.bit_count() <= question["max_ticks"]]
    sets = [tuple(j for j in range(ordinary) if mask >> j & 1) for mask in masks]
    return sets + [(ordinary + i,) for i in range(question["alone"])]


def code_of(question: dict[str, Any], answer: Any, random_below: Any) -> tuple[Any, list[Any]]:
    """Return the report of one question and its draws."""
    channel = question["channel"]
    if channel["kind"] == "bit_vector":
        ticks = [int(option in answer) for option in range(channel["m"])]
        return perturbed_bits(
            channel["m"], channel["sampled"], channel["T"], channel["L"], ticks, random_below
        )
    if channel["kind"] == "half_space":
        ticks = [int(option in answer) for option in range(channel["m"])]
        return perturbed_together(channel, ticks, random_below)
    if channel["kind"] == "subset_selection":
        truth = patterns_of(question).index(tuple(answer)) if question["alone"] else answer
        return perturbed(*(channel[name] for name in "kdTL"), truth, random_below)
    row = rows_of(channel)[ranking_number(question, answer)]
    u = random_below(sum(row))
    return sum(u >= weight for weight in itertools.accumulate(row)), [[sum(row), u]]


def ranking_number(question: dict[str, Any], answer: Any) -> Any:
    """Return the number of a ranking, or of an opt-out after all rankings; others unchanged."""
    if question["type"] != "ranking":
        return answer
    m = len(question["options"]) - question["channel"]["no_answers"]
    if isinstance(answer, int):
        return math.factorial(m) + answer - m
    return list(itertools.permutations(range(m))).index(tuple(answer))


def rows_of(channel: dict[str, Any]) -> list[list[int]]:
    """Return all rows of a table, including those of "prefer not to say" and "does not apply"."""
    rows = table_rows(channel["table"])
    return with_no_answers(rows, channel["no_answers"]) if channel["no_answers"] else rows


def truth_of(question: dict[str, Any], answers: dict[str, Any]) -> Any:
    """Return the answer, or the option that an unanswered or skipped question counts as."""
    ids = [option["id"] for option in question["options"]]
    points = question["grid"]["points"] if question["type"] in ("number", "date") else 0
    skipped = question["ask_if"] is not None and answers.get("works", 2) != 0
    if not skipped and question["id"] in answers:
        return answers[question["id"]]
    option = ids.index(question["not_applicable"] if skipped else question["opt_out"])
    return [option] if question["alone"] else points + option


def report_vectors() -> list[dict[str, Any]]:
    """Return whole bodies: canonical definition, answers, draws, id bytes -> the report's bytes."""
    rng = random.Random(20261122)
    small = ({"first": 0, "second": 2}, {"first": 1, "second": 0}, {"second": 1})
    sampled = EVERY_DESIGN.replace(b"epsilon = 0.7", b"epsilon = 0.7\nquestions_per_person = 3", 1)
    return [
        report_vector(content, answers, drawn_ids, rng)
        for content, answer_sets, drawn_ids in (
            (TWO_CHOICES, small, None),
            (EVERY_DESIGN, ANSWERS, None),
            (sampled, ANSWERS, ["works", "hours", "why", "group"]),
            (
                JOINT,
                ({"smoked": 1, "mood": 0, "drank": 2}, {"smoked": 0, "mood": 3, "drank": 0}),
                ["smoked", "mood", "drank"],
            ),
            (
                ONE_REPORT,
                ({"tools": [0, 3, 5], "drives": 0}, {"tools": [7], "drives": 1}, {"drives": 2}),
                None,
            ),
            (
                ITEMS,
                (
                    {"sleep": 0, "town": 2, "smoke": 1, "drink": 1, "alone": 0},
                    {"sleep": 1, "town": 0, "smoke": 1, "drink": 0, "alone": 1},
                ),
                None,
            ),
            (
                MATRIX,
                (
                    {"work_pay": 0, "work_hours": 4, "work_boss": 2, "old": 0},
                    {"work_hours": 1, "old": 1},
                ),
                None,
            ),
            (PIPED, ({"job": 1, "hours": 30}, {}), None),
        )
        for answers in answer_sets
    ]


def report_vector(
    content: str | bytes, answers: dict[str, Any], drawn_ids: list[str] | None, rng: random.Random
) -> dict[str, Any]:
    definition = publish(content)
    form = json.loads(definition.canonical)
    draws, codes, joint_codes = [], [], {}
    questions = [question for page in form["pages"] for question in page["questions"]]
    for question in questions:
        if drawn_ids is not None and question["id"] not in drawn_ids:
            codes.append(None)
            continue
        if "joint" in question:
            if question["id"] not in joint_codes:
                new_codes, new_draws = joint_codes_of(question, questions, answers, rng)
                joint_codes |= new_codes
                draws += new_draws
            codes.append(joint_codes[question["id"]])
            continue
        code, new_draws = code_of(question, truth_of(question, answers), rng.randrange)
        draws += new_draws
        codes.append(code)
    octets = rng.randbytes(16)
    report_id = base64.urlsafe_b64encode(octets).decode().rstrip("=")
    start = (
        f'{{"definition":"{definition.sha256}","report_id":"{report_id}","stratum":"",'
        f'"codes":[{",".join(map(json.dumps, codes))}],"invitation":"","pad":"'
    )
    return {
        "canonical": definition.canonical.decode("utf-8"),
        "id": definition.sha256,
        "answers": answers,
        "drawn": drawn_ids,
        "draws": draws,
        "id_bytes": list(octets),
        "body": start + "." * (definition.report_bytes - len(start) - 2) + '"}',
    }


def joint_codes_of(
    question: dict[str, Any],
    questions: list[dict[str, Any]],
    answers: dict[str, Any],
    rng: random.Random,
) -> tuple[dict[str, int], list[list[int]]]:
    """Return the reports of all questions of a joint response, and its draws."""
    joint = question["joint"]
    members = [member for member in questions if member["id"] in joint["questions"]]
    if joint["channel"]["kind"] == "half_space":
        bits = [answers[member["id"]] for member in members]
        reported, draws = vector_together(joint["channel"], bits, rng.randrange)
        return dict(zip(joint["questions"], reported, strict=True)), draws
    # All combinations of options in order, the last question fastest.
    combinations = list(itertools.product(*(range(len(m["options"])) for m in members)))
    truth = combinations.index(tuple(answers[member["id"]] for member in members))
    code, draws = perturbed(*(joint["channel"][name] for name in "kdTL"), truth, rng.randrange)
    ids = (member["id"] for member in members)
    return dict(zip(ids, combinations[int(code)], strict=True)), draws


def label_vectors() -> list[dict[str, Any]]:
    """Return surveys: the questions -> the figures of the privacy label of each."""
    form = json.loads(publish(EVERY_DESIGN).canonical)
    questions = [question for page in form["pages"] for question in page["questions"]]
    choices = [
        {**questions[0], "type": "single_choice", "options": options_of(k), "opt_out": "",
         "channel": {"kind": "subset_selection", "k": k, "d": d, "T": T, "L": L}}
        for k, d, T, L in LABELLED
    ]  # fmt: skip
    surveys = [[choice] for choice in choices] + [questions]
    unsampled = [
        {"questions": survey, "labels": labels_of(survey), "sampling": None, "topics": {}}
        for survey in surveys
    ]
    return [
        *unsampled,
        *topic_vectors(questions),
        *group_vectors(choices[0]),
        *joint_vectors(),
        *item_vectors(),
        *space_labels(),
    ]


def space_labels() -> list[dict[str, Any]]:
    """Return a survey of one multiple choice that is reported as a whole."""
    form = json.loads(publish(ONE_REPORT).canonical)
    questions = [question for page in form["pages"] for question in page["questions"]]
    labels = labels_of(questions)
    return [{"questions": questions, "labels": labels, "sampling": None, "topics": {}}]


TOPICS = {"works": "Work", "coins": "Work", "places": "Places", "why": "Work"}
"""Topics of questions of `EVERY_DESIGN`."""


def topic_vectors(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return surveys with topics that ask everything, or some groups of linked questions."""
    with_topics = [
        {**question, "topic": TOPICS[question["id"]]} if question["id"] in TOPICS else question
        for question in questions
    ]
    # "hours" has no topic, but its report depends on the answer to "works".
    groups = [["works", "hours"]] + [
        [question["id"]] for question in questions if question["id"] not in ("works", "hours")
    ]
    return [
        {
            "questions": with_topics,
            "labels": labels_of(with_topics),
            "sampling": draw and {"draw": draw, "groups": groups},
            "topics": topics_of(with_topics, groups, draw or len(groups), groups),
        }
        for draw in (None, 1, 2)
    ]


def group_vectors(choice: dict[str, Any]) -> list[dict[str, Any]]:
    """Return surveys whose drawn groups contain questions without skip logic between them."""
    groups, linked = [["q0", "q1"], ["q2", "q3"]], [[f"q{i}"] for i in range(4)]
    surveys = [
        [{**choice, "id": f"q{i}", **({"topic": "T"} if i in members else {})} for i in range(4)]
        for members in ((0, 1, 2, 3), (0, 1, 2), (0, 2))
    ]
    return [
        {
            "questions": survey,
            "labels": labels_of(survey),
            "sampling": {"draw": 1, "groups": groups},
            "topics": topics_of(survey, groups, 1, linked),
        }
        for survey in surveys
    ]


def item_vectors() -> list[dict[str, Any]]:
    """Return a survey of a half-space: its ratio is that of each of its questions."""
    form = json.loads(publish(ITEMS).canonical)
    questions = [question for page in form["pages"] for question in page["questions"]]
    joint = questions[0]["joint"]["channel"]
    near, far = map(len, sides_of(joint))
    whole = Fraction(joint["near"] * far, joint["far"] * near)
    labels = {
        question["id"]: label_of(question, whole if "joint" in question else ratio_of(question))
        for question in questions
    }
    return [{"questions": questions, "labels": labels, "sampling": None, "topics": {}}]


def joint_vectors() -> list[dict[str, Any]]:
    """Return surveys with a joint response: its ratio is T/L, and that of each of its questions."""
    form = json.loads(publish(JOINT).canonical)
    questions = [question for page in form["pages"] for question in page["questions"]]
    joint = next(question["joint"] for question in questions if "joint" in question)
    whole = Fraction(joint["channel"]["T"], joint["channel"]["L"])
    labels = {
        question["id"]: label_of(question, whole if "joint" in question else ratio_of(question))
        for question in questions
    }
    with_topic = [{**question, "topic": "T"} for question in questions]
    by_id = {question["id"]: question for question in questions}
    units = [
        whole,
        ratio_of(by_id["mood"]),
        ratio_of(by_id["works"]) * ratio_of(by_id["alone"]),
        ratio_of(by_id["hours"]),
    ]
    vectors = []
    for sampling, draw in ((form["sampling"], 2), (None, 4)):
        label = label_of(questions[0], math.prod(sorted(units)[-draw:]))
        figures = {name: label[name] for name in ("odds", "from10", "from50")}
        vectors.append(
            {"questions": with_topic, "labels": labels, "sampling": sampling,
             "topics": {"T": figures}}
        )  # fmt: skip
    return vectors


def topics_of(
    questions: list[dict[str, Any]], groups: list[list[str]], draw: int, linked: list[list[str]]
) -> dict[str, dict[str, Any]]:
    """Return the figures of each topic: of all sets of `draw` groups, the one that reveals most."""
    by_id = {question["id"]: question for question in questions}
    figures = {}
    for topic in {question["topic"]: 0 for question in questions if "topic" in question}:
        concerned = {
            name
            for group in linked
            if any(by_id[member].get("topic") == topic for member in group)
            for name in group
        }
        ratio = max(
            math.prod(ratio_of(by_id[name]) for group in asked for name in {*group} & concerned)
            for asked in itertools.combinations(groups, draw)
        )
        label = label_of(questions[0], ratio)
        figures[topic] = {name: label[name] for name in ("odds", "from10", "from50")}
    return figures


def labels_of(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the label of every question; "hours" depends on "works", so both share a ratio."""
    labels = {}
    for question in questions:
        linked = [question]
        if len(questions) > 1 and question["id"] in ("works", "hours"):
            linked = [candidate for candidate in questions if candidate["id"] in ("works", "hours")]
        ratio = math.prod(map(ratio_of, linked))
        labels[question["id"]] = label_of(question, ratio)
    return labels


def options_of(k: int) -> list[dict[str, str]]:
    return [{"id": f"o{i}", "label": f"Option {i}"} for i in range(k)]


def label_of(question: dict[str, Any], ratio: Fraction) -> dict[str, Any]:
    if_true, if_not = shares_of(question)
    ten, half = (math.ceil(100 * prior * ratio / (prior * ratio + 1 - prior)) for prior in PRIORS)
    return {"own": if_true, "other": if_not, "odds": odds(ratio), "from10": ten,
            "from50": half}  # fmt: skip


def odds(ratio: Fraction) -> str:
    """Below 10 rounded up to a tenth, from 10 on to a whole number."""
    return tenths(math.ceil(10 * ratio)) if ratio < 10 else f"{math.ceil(ratio):,}"


def tenths(value: int) -> str:
    return f"{value // 10:,}" + (f".{value % 10}" if value % 10 else "")


def shares_of(question: dict[str, Any]) -> tuple[str, str]:
    """Return how many of 100 reports state the first option if it is the answer, and if not."""
    if question["type"] in ("number", "date", "ranking"):
        return "", ""
    channel = question["channel"]
    if channel["kind"] == "weight_table":
        first_column = [Fraction(row[0], sum(row)) for row in rows_of(channel)]
        shares = first_column[0], min(first_column[1:])
    elif channel["kind"] == "half_space":
        # By definition: near and far reports, and those of each in which the first bit is right.
        near, far = sides_of(channel)
        p = sum(
            Fraction(channel[side] * sum(vector[0] for vector in vectors), len(vectors))
            for side, vectors in (("near", near), ("far", far))
        ) / (channel["near"] + channel["far"])
        shares = p, 1 - p
    else:
        T, L = channel["T"], channel["L"]
        if channel["kind"] == "bit_vector":
            shares = Fraction(T, T + L), Fraction(L, T + L)
        elif question["alone"]:
            sets = patterns_of(question)
            total = T + (len(sets) - 1) * L
            containing = sum(0 in pattern for pattern in sets)
            shares = Fraction(T + (containing - 1) * L, total), Fraction(containing * L, total)
        else:
            k, d = channel["k"], channel["d"]
            p = Fraction(d * T, d * T + (k - d) * L)
            shares = p, (p * (d - 1) + (1 - p) * d) / (k - 1)
    if_true, if_not = (tenths(math.floor(1000 * share + Fraction(1, 2))) for share in shares)
    return if_true, if_not


def sides_of(channel: dict[str, int]) -> list[list[tuple[int, ...]]]:
    """Return all vectors of right (1) and wrong (0) bits: the near ones and the others."""
    vectors = list(itertools.product((0, 1), repeat=channel["m"]))
    return [
        [vector for vector in vectors if (sum(vector) >= channel["agreements"]) == is_near]
        for is_near in (True, False)
    ]


def ratio_of(question: dict[str, Any]) -> Fraction:
    """Return e^epsilon; for bit vectors from the two answers that differ in the most bits."""
    channel = question["channel"]
    if channel["kind"] == "weight_table":
        columns = zip(*rows_of(channel), strict=True)
        return max(Fraction(max(column), min(column)) for column in columns)
    if channel["kind"] == "half_space":
        near, far = sides_of(channel)
        return Fraction(channel["near"], len(near)) / Fraction(channel["far"], len(far))
    ratio = Fraction(channel["T"], channel["L"])
    if channel["kind"] == "subset_selection":
        return ratio
    sets = [set(pattern) for pattern in patterns_of(question)]
    distance = max(len(first ^ second) for first in sets for second in sets)
    return ratio ** min(channel["sampled"], distance)


def main() -> None:
    all_vectors = {
        "mechanism": mechanism_vectors(),
        "report": report_vectors(),
        "label": label_vectors(),
    }
    for name, vectors in all_vectors.items():
        lines = ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors)
        (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
