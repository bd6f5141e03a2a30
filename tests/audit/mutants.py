"""Broken channels and generators: each the shipped client with one text replaced."""

from __future__ import annotations

from typing import NamedTuple

KEPT = "const ones = bits.filter((bit) => truth[bit] ^ Number(uniformBelow(T + L) >= T));"
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
        "const ones = bits.filter((bit) => truth[bit] ^ Number(u >= T));",
        "ticks",
    ),
    "a draw used twice beside one that is thrown away": Mutant(
        "mechanism.js",
        KEPT,
        "const u = bits.map(() => uniformBelow(T + L)); "
        "const ones = bits.filter((bit) => truth[bit] ^ Number(u[0] >= T));",
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
        "return packBits([...bits, ...ones",
        "return packBits([...bits.filter((bit) => truth[bit]), ...ones",
        "ticks",
    ),
    "bits that were not asked are reported too": Mutant(
        "mechanism.js",
        "...ones.map((bit) => m + bit)]",
        "...ones.map((bit) => m + bit), ...(truth[m - 1] ? [2 * m - 1] : [])]",
        "ticks",
    ),
    "patterns in another order for some": Mutant(
        "truth.js",
        "pattern.join() === answer.join()",
        "pattern.join() === (answer.length > 1 ? '0' : answer.join())",
        "ticks",
    ),
    # Weight tables
    "table scanned off by one": Mutant(
        "mechanism.js", "Number(u >= reached)", "Number(u > reached)", "tables"
    ),
    "a window one too wide": Mutant(
        "weight-table.js", "start, start + width)", "start, start + width + 1)", "tables"
    ),
    "one bit turned round": Mutant(
        "weight-table.js",
        "const weight = truth * T + (R - truth) * L;",
        "const weight = truth * L + (R - truth) * T;",
        "tables",
    ),
    "an end of the grid that gathers nothing": Mutant(
        "weight-table.js", "row[last] = tail(last - truth);", "row[0] += 0;", "tables"
    ),
    "both answers that are none make the same report": Mutant(
        "weight-table.js",
        "truth === truths + i ? ownWeight",
        "truths === truths + i ? ownWeight",
        "tables",
    ),
    "no answer is a row of its own with other weights": Mutant(
        "weight-table.js", "const raise = Math.min(missing,", "const raise = Math.min(0,", "tables"
    ),
    "partial sums as floats, exact in small tables": Mutant(
        "mechanism.js",
        "reached += weight;",
        "reached = Math.fround(reached + weight);",
        "numbers",
    ),
    # What the pages show
    "the bit that stands alone forgotten in the sensitivity": Mutant(
        "privacy-loss.js", "alone >= 1 ? s + 1 : 0", "alone >= 1 ? s : 0", "alone"
    ),
    "epsilon of one bit for all": Mutant(
        "privacy-loss.js", "return BigInt(Math.min(sampled, D));", "return 1n;", "ticks"
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
    "a limit kept from the first n": Mutant(
        "random.js",
        "if (n !== limited) [limit, limited]",
        "if (limited === 1) [limit, limited]",
        "two",
    ),
    "a limit kept from the largest n": Mutant(
        "random.js",
        "if (n !== limited) [limit, limited]",
        "if (n > limited) [limit, limited]",
        "two",
    ),
    "used words not wiped": Mutant("random.js", "pool[used] = 0;", "", "two"),
    "words left in the pool": Mutant("random.js", "pool.fill(0);", "", "two"),
    "ids of one random byte": Mutant(
        "random.js",
        "fill(getRandomValues, bytes);\n  return bytes;",
        "fill(getRandomValues, bytes); bytes.fill(0, 1);\n  return bytes;",
        "two",
    ),
    "only half of the range": Mutant(
        "random.js", "return word % n;", "return word % (n >> 1 || 1);", "choices"
    ),
}

OWN = "...(group ? productOf([group, ownRatio]) : ownRatio),"
READ = "return freeze(definition);"
OF_ALL = "definition.pages.flatMap((page) => page.questions)"

BROKEN_READING = {
    # The device runs another survey than the one whose hash it knows
    "channels mixed up when they are shared": Mutant(
        "definition.js",
        "const text = JSON.stringify(value);",
        "const text = JSON.stringify([value.kind, value.k]);",
        "two",
    ),
    "a hundred times the weight of the truth": Mutant(
        "definition.js",
        READ,
        f"for (const {{ channel }} of {OF_ALL}) channel.T *= 100; {READ}",
        "two",
    ),
    "a question that loses its opt-out": Mutant(
        "definition.js", READ, f"for (const each of {OF_ALL}) each.opt_out = ''; {READ}", "two"
    ),
    # What is built in is gone
    "ceilings gone": Mutant(
        "definition.js", "if (value > ceiling) throw", "if (false) throw", "two"
    ),
    "ceilings of the first question only": Mutant(
        "definition.js",
        f"of {OF_ALL}) {{\n    refuseCertain",
        f"of {OF_ALL}.slice(0, 1)) {{\n    refuseCertain",
        "two",
    ),
    "no ceiling for all together": Mutant(
        "definition.js",
        "refuseRatio(totalRatio(definition), CEILINGS.totalRatio, together);",
        "",
        "two",
    ),
    "zero weights taken": Mutant(
        "definition-channels.js", "demand(T > L && L >= 1,", "demand(T > L,", "two"
    ),
    "T = L taken": Mutant(
        "definition-channels.js", "demand(T > L && L >= 1,", "demand(T >= L && L >= 1,", "two"
    ),
    "rows of unequal sum taken": Mutant(
        "definition-channels.js", "demand(BigInt(total) === sum,", "demand(true,", "two"
    ),
    "totals above a word taken": Mutant(
        "definition-channels.js", "demand(total <= WORD_VALUES,", "demand(true,", "two"
    ),
    "unknown keys taken": Mutant(
        "definition-structure.js", "demand(unknown === undefined,", "demand(true,", "two"
    ),
    "the hash not compared with the link's": Mutant(
        "definition.js", 'if (prefix === "") return;', "return;", "two"
    ),
    "a link of one digit": Mutant("definition.js", "{16,64}$/i", "{1,64}$/i", "two"),
    "the link's hash not looked at": Mutant(
        "definition-loader.js", "expectedPrefix: link.prefix,", 'expectedPrefix: "",', "two"
    ),
    "all questions asked of everybody": Mutant(
        "report.js", "checkDrawn(definition, circumstances.drawn);", "", "ten"
    ),
    # What is drawn, and what the label says
    "only the first seven groups are drawn": Mutant(
        "report.js",
        "drawSome(sampling.groups, sampling.draw, uniformBelow)",
        "drawSome(sampling.groups.slice(0, 7), sampling.draw, uniformBelow)",
        "ten",
    ),
    "of many groups only some are drawn": Mutant(
        "report.js",
        "drawSome(sampling.groups, sampling.draw, uniformBelow)",
        "drawSome(sampling.groups.slice(0, 11), sampling.draw, uniformBelow)",
        "twelve",
    ),
    "linked questions forgotten in the label": Mutant(
        "privacy-loss.js",
        OWN,
        "...ownRatio,",
        "routed",
    ),
    "posteriors rounded down in the label": Mutant(
        "privacy-loss.js", "(dividend + divisor - 1n) / divisor", "dividend / divisor", "two"
    ),
    "frequencies of the truth for every answer": Mutant(
        "frequencies.js", "other: perHundred(other, of)", "other: perHundred(own, of)", "two"
    ),
}

LINK = "{ ...link, drawn }"

BROKEN_VISITS = {
    "raw answers in the stratum": Mutant(
        "main.js", LINK, "{ ...link, drawn, stratum: JSON.stringify(answers) }", "two"
    ),
    "everybody asked everything": Mutant(
        "visit.js",
        "({ drawn, orders } = drawQuestionsAndOrders(survey.definition, getRandomValues))",
        "drawn = null",
        "ten",
    ),
    "a report id that is the same for all": Mutant(
        "main.js", "drawBytes(getRandomValues, 16)", "new Uint8Array(16)", "two"
    ),
    "answers kept on the device": Mutant(
        "visit.js",
        "function send() {",
        "function send() { localStorage.setItem('a', answers.q0);",
        "two",
    ),
    "answers remembered after sending": Mutant("visit.js", "forget();\n    }", "}", "two"),
    "words not wiped after sending": Mutant(
        "main.js",
        "uniformBelow.wipe();\n  }\n}\n\n// A page",
        "}\n}\n\n// A page",
        "two",
    ),
    "another report after each failure": Mutant(
        "delivery.js",
        "sendUntilAnswered(() => send(body), waiter(earlier))",
        "sendUntilAnswered(() => send(body.replace('pad', 'Pad')), waiter(earlier))",
        "two",
    ),
    "answers in the address": Mutant(
        "transport.js",
        "await fetch(url, { ...post",
        "await fetch(`${url}?${body.length}`, { ...post",
        "two",
    ),
    "cookies sent along": Mutant(
        "transport.js", 'credentials: "omit"', 'credentials: "include"', "two"
    ),
    "a new report where one is kept": Mutant(
        "outbox.js",
        'stored.state === "empty" ? keep({ state: "pending", body }) : stored',
        'keep({ state: "pending", body })',
        "two",
    ),
    "a survey under a second name": Mutant(
        "definition-loader.js", "demand(definition.slug === slug,", "demand(true,", "two"
    ),
    "the report kept after it arrived": Mutant(
        "outbox.js",
        'settle(body, { state: "sent" })',
        'settle(body, { state: "sent", body })',
        "two",
    ),
}
