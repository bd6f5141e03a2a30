"""Broken channels and generators: each the shipped client with one text replaced."""

from __future__ import annotations

from typing import NamedTuple

KEPT = "const ones = asked.filter((bit) => truth[bit] ^ Number(uniformBelow(T + L) >= T));"
ASKED = "drawSome(numbersBelow(m), sampled, uniformBelow)"


class Mutant(NamedTuple):
    """In which file what becomes what, and the survey that finds it."""

    file: str
    old: str
    new: str
    survey: str


BROKEN_CHANNELS = {
    # One draw of generalized randomized response
    "off by one": Mutant("mechanism.js", "u < T ? 0", "u <= T ? 0", "choices"),
    "one weight too many": Mutant("mechanism.js", "u < T ? 0", "u < T + L ? 0", "choices"),
    "T and L swapped": Mutant(
        "mechanism.js",
        "const u = uniformBelow(T + (k - 1) * L);",
        "[T, L] = [L, T]; const u = uniformBelow(T + (k - 1) * L);",
        "choices",
    ),
    "random answer may equal the truth": Mutant(
        "mechanism.js", "1 + Math.floor((u - T) / L)", "Math.floor((u - T) / L)", "choices"
    ),
    "float comparison": Mutant(
        "mechanism.js",
        "u < T ? 0",
        "u / (T + (k - 1) * L) < Number((T / (T + (k - 1) * L)).toFixed(1)) ? 0",
        "choices",
    ),
    "offset subtracted and folded": Mutant(
        "mechanism.js",
        "(truth + drawOffset(k, T, L, uniformBelow)) % k",
        "Math.max(truth - drawOffset(k, T, L, uniformBelow), 0)",
        "choices",
    ),
    "draws only when it must": Mutant(
        "mechanism.js",
        "return u < T ? 0 : 1 + Math.floor((u - T) / L);",
        "return u < T ? 0 : 1 + uniformBelow(k - 1);",
        "choices",
    ),
    "the truth in the clear": Mutant(
        "mechanism.js",
        "if (d === 1) return (truth +",
        "if (d === 1 && truth === 0) return 0; if (d === 1) return (truth +",
        "choices",
    ),
    # Sets of options
    "the truth stays out of its set": Mutant(
        "mechanism.js", "< d * T) deck[d - 1] = 0;", "< d * T) deck[d - 1] = 1;", "choices"
    ),
    "a shuffle that keeps its first card": Mutant(
        "mechanism.js",
        "const j = i + uniformBelow(deck.length - i);",
        "const j = i + uniformBelow(deck.length - i) * Math.sign(i);",
        "choices",
    ),
    # Bit vectors
    "a draw used twice for two bits": Mutant(
        "mechanism.js",
        KEPT,
        "const u = uniformBelow(T + L); "
        "const ones = asked.filter((bit) => truth[bit] ^ Number(u >= T));",
        "ticks",
    ),
    "a draw used twice beside one that is thrown away": Mutant(
        "mechanism.js",
        KEPT,
        "const u = asked.map(() => uniformBelow(T + L)); "
        "const ones = asked.filter((bit) => truth[bit] ^ Number(u[0] >= T));",
        "ticks",
    ),
    "bits flipped one draw too rarely": Mutant(
        "mechanism.js", "uniformBelow(T + L) >= T", "uniformBelow(T + L) > T", "ticks"
    ),
    "an option that stands alone is never hidden": Mutant(
        "mechanism.js",
        KEPT,
        KEPT.replace(">= T", ">= T && !(truth[m - 1] && bit === m - 1)"),
        "ticks",
    ),
    "only what was ticked is flipped": Mutant(
        "mechanism.js", KEPT, KEPT.replace(">= T", ">= T && truth[bit] === 1"), "ticks"
    ),
    "the options that are asked chosen by the truth": Mutant(
        "mechanism.js",
        ASKED,
        "((cards) => { cards.sort((a, b) => truth[b] - truth[a]); "
        "return drawSome(cards, sampled, (n) => uniformBelow(n) * 0); })(numbersBelow(m))",
        "ticks",
    ),
    "the options that are asked chosen by the truth one time in many": Mutant(
        "mechanism.js",
        ASKED,
        "((some, ticked) => (some[0] === 0 && truth[0] === 0 && ticked > 0 ? [ticked] : some))"
        f"({ASKED}, truth.indexOf(1))",
        "ticks",
    ),
    "the mask of what was asked shows what was ticked": Mutant(
        "mechanism.js",
        "return packBits([...asked, ...ones",
        "return packBits([...asked.filter((bit) => truth[bit]), ...ones",
        "ticks",
    ),
    "bits that were not asked are reported too": Mutant(
        "mechanism.js",
        "...ones.map((bit) => m + bit)]",
        "...ones.map((bit) => m + bit), ...(truth[m - 1] ? [2 * m - 1] : [])]",
        "ticks",
    ),
    "patterns in another order for some": Mutant(
        "report.js",
        "pattern.join() === answer.join()",
        "pattern.join() === (answer.length > 1 ? '0' : answer.join())",
        "ticks",
    ),
    # Weight tables
    "table scanned off by one": Mutant(
        "mechanism.js", "Number(u >= reached)", "Number(u > reached)", "tables"
    ),
    "a window one too wide": Mutant(
        "mechanism.js", "start, start + width)", "start, start + width + 1)", "tables"
    ),
    "one bit turned round": Mutant(
        "mechanism.js",
        "const one = truth * T + (R - truth) * L;",
        "const one = truth * L + (R - truth) * T;",
        "tables",
    ),
    "an end of the grid that gathers nothing": Mutant(
        "mechanism.js", "row[last] = tail(last - truth);", "row[0] += 0;", "tables"
    ),
    "both answers that are none make the same report": Mutant(
        "mechanism.js", "truth === truths + i ? own", "truths === truths + i ? own", "tables"
    ),
    "no answer is a row of its own with other weights": Mutant(
        "mechanism.js", "const raise = Math.min(missing,", "const raise = Math.min(0,", "tables"
    ),
    "partial sums as floats, exact in small tables": Mutant(
        "mechanism.js",
        "reached += weight;",
        "reached = Math.fround(reached + weight);",
        "numbers",
    ),
    # What the pages show
    "the bit that stands alone forgotten in the sensitivity": Mutant(
        "mechanism.js", "alone >= 1 ? s + 1 : 0", "alone >= 1 ? s : 0", "alone"
    ),
    "epsilon of one bit for all": Mutant(
        "mechanism.js", "return BigInt(Math.min(sampled, D));", "return 1n;", "ticks"
    ),
    # The generator
    "modulo bias": Mutant("random.js", "while (word >= limit) word = nextWord();", "", "choices"),
    "limit off by one": Mutant(
        "random.js", "while (word >= limit)", "while (word > limit)", "choices"
    ),
    "seeded generator": Mutant(
        "random.js", "getRandomValues(array);", "array.fill(123456789);", "choices"
    ),
    "a pool that is used again": Mutant(
        "random.js",
        "if (used === POOL_WORDS) {",
        "if (used === POOL_WORDS) used = 16; if (pool[0] === undefined) {",
        "choices",
    ),
    "only half of the range": Mutant(
        "random.js", "return word % n;", "return word % (n >> 1 || 1);", "choices"
    ),
}
