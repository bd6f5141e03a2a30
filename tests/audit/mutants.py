"""Mutants of the shipped client, each with one text replaced, which the audit must detect."""

from __future__ import annotations

from typing import NamedTuple

FLIPPED_BITS = "const ones = bits.filter((bit) => truth[bit] ^ Number(uniformBelow(T + L) >= T));"
SAMPLE = "drawSome(numbersBelow(m), sampled, uniformBelow)"


class Mutant(NamedTuple):
    """A file, the text to replace, its replacement, and the survey whose audit catches it."""

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
    "a second draw only for another option": Mutant(
        "mechanism.js",
        "return u < T ? 0 : 1 + Math.floor((u - T) / L);",
        "return u < T ? 0 : 1 + uniformBelow(k - 1);",
        "choices",
    ),
    "the first option without randomization": Mutant(
        "mechanism.js",
        "if (d === 1) return (truth +",
        "if (d === 1 && truth === 0) return 0; if (d === 1) return (truth +",
        "choices",
    ),
    # Sets of options
    "a set without its truth": Mutant(
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
        FLIPPED_BITS,
        "const u = uniformBelow(T + L); "
        "const ones = bits.filter((bit) => truth[bit] ^ Number(u >= T));",
        "ticks",
    ),
    "a draw used twice and another one discarded": Mutant(
        "mechanism.js",
        FLIPPED_BITS,
        "const u = bits.map(() => uniformBelow(T + L)); "
        "const ones = bits.filter((bit) => truth[bit] ^ Number(u[0] >= T));",
        "ticks",
    ),
    "bits flipped one draw too rarely": Mutant(
        "mechanism.js", "uniformBelow(T + L) >= T", "uniformBelow(T + L) > T", "ticks"
    ),
    "an exclusive option is never flipped": Mutant(
        "mechanism.js",
        FLIPPED_BITS,
        FLIPPED_BITS.replace(">= T", ">= T && !(truth[m - 1] && bit === m - 1)"),
        "ticks",
    ),
    "only ticked options are flipped": Mutant(
        "mechanism.js",
        FLIPPED_BITS,
        FLIPPED_BITS.replace(">= T", ">= T && truth[bit] === 1"),
        "ticks",
    ),
    "sampled options chosen by the truth": Mutant(
        "mechanism.js",
        SAMPLE,
        "((cards) => { cards.sort((a, b) => truth[b] - truth[a]); "
        "return drawSome(cards, sampled, (n) => uniformBelow(n) * 0); })(numbersBelow(m))",
        "ticks",
    ),
    "sampled options rarely chosen by the truth": Mutant(
        "mechanism.js",
        SAMPLE,
        "((some, ticked) => (some[0] === 0 && truth[0] === 0 && ticked > 0 ? [ticked] : some))"
        f"({SAMPLE}, truth.indexOf(1))",
        "ticks",
    ),
    "the mask of sampled options shows the ticks": Mutant(
        "mechanism.js",
        "return packBits([...bits, ...ones",
        "return packBits([...bits.filter((bit) => truth[bit]), ...ones",
        "ticks",
    ),
    "bits of unsampled options reported": Mutant(
        "mechanism.js",
        "...ones.map((bit) => m + bit)]",
        "...ones.map((bit) => m + bit), ...(truth[m - 1] ? [2 * m - 1] : [])]",
        "ticks",
    ),
    "patterns in another order for several ticks": Mutant(
        "answers.js",
        "pattern.join() === answer.join()",
        "pattern.join() === (answer.length > 1 ? '0' : answer.join())",
        "ticks",
    ),
    # Half-spaces
    "near and other reports swapped": Mutant(
        "half-space.js",
        "uniformBelow(near + far) < near",
        "uniformBelow(near + far) >= near",
        "one_report",
    ),
    "a vector of the middle counts as wrong and as right": Mutant(
        "half-space.js", "m, m - agreements + 1)", "m, m - agreements)", "one_report"
    ),
    "the first vector drawn twice": Mutant(
        "half-space.js", "Number(rank < withOne)", "Number(rank <= withOne)", "one_report"
    ),
    "only the reported vector drawn": Mutant(
        "half-space.js",
        "const wrong = vectorOf(uniformBelow(farCount),",
        "const wrong = vectorOf(isNear ? 0 : uniformBelow(farCount),",
        "one_report",
    ),
    "one draw for both vectors": Mutant(
        "half-space.js",
        "const right = vectorOf(uniformBelow(nearCount),",
        "const u = uniformBelow(nearCount); uniformBelow = () => u; const right = vectorOf(u,",
        "one_report",
    ),
    "a flip only where no option is ticked": Mutant(
        "mechanism.js",
        "truth[bit] ^ flip)",
        "truth[bit] | flip)",
        "one_report",
    ),
    "epsilon of near against all other reports": Mutant(
        "half-space.js",
        "BigInt(channel.near) * BigInt(farCount)",
        "BigInt(channel.near)",
        "one_report",
    ),
    # Weight tables
    "table scanned off by one": Mutant(
        "mechanism.js", "Number(u >= reached)", "Number(u > reached)", "tables"
    ),
    "a window one too wide": Mutant(
        "weight-table.js", "start, start + width)", "start, start + width + 1)", "tables"
    ),
    "one bit reversed": Mutant(
        "weight-table.js",
        "const weight = truth * T + (R - truth) * L;",
        "const weight = truth * L + (R - truth) * T;",
        "tables",
    ),
    "an end of the grid without its tail": Mutant(
        "weight-table.js", "row[last] = tail(last - truth);", "row[0] += 0;", "tables"
    ),
    "the same report for both answers that are no answer": Mutant(
        "weight-table.js",
        "truth === truths + i ? ownWeight",
        "truths === truths + i ? ownWeight",
        "tables",
    ),
    "a row of no answer with other weights": Mutant(
        "weight-table.js", "const raise = Math.min(missing,", "const raise = Math.min(0,", "tables"
    ),
    "partial sums as floats, exact in small tables": Mutant(
        "mechanism.js",
        "reached += weight;",
        "reached = Math.fround(reached + weight);",
        "numbers",
    ),
    # Figures on the pages
    "the exclusive bit missing in the sensitivity": Mutant(
        "privacy-loss.js", "alone >= 1 ? s + 1 : 0", "alone >= 1 ? s : 0", "alone"
    ),
    "epsilon of one bit for all bits": Mutant(
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
    "a pool used twice": Mutant(
        "random.js",
        "if (used === POOL_WORDS) {",
        "if (used === POOL_WORDS) used = 16; if (pool[0] === undefined) {",
        "choices",
    ),
    "the limit of the first n for all n": Mutant(
        "random.js",
        "if (n !== limited) [limit, limited]",
        "if (limited === 1) [limit, limited]",
        "two",
    ),
    "the limit of the largest n for all n": Mutant(
        "random.js",
        "if (n !== limited) [limit, limited]",
        "if (n > limited) [limit, limited]",
        "two",
    ),
    "used words not wiped": Mutant("random.js", "pool[used] = 0;", "", "two"),
    "words left in the pool": Mutant("random.js", "pool.fill(0);", "", "two"),
    "ids of one random byte": Mutant(
        "random.js",
        "fillRandomly(getRandomValues, bytes);\n  return bytes;",
        "fillRandomly(getRandomValues, bytes); bytes.fill(0, 1);\n  return bytes;",
        "two",
    ),
    "only half of the range": Mutant(
        "random.js", "return word % n;", "return word % (n >> 1 || 1);", "choices"
    ),
}

LINKED_RATIO = "...(group ? productOf([group, ownRatio]) : ownRatio),"
RETURN_DEFINITION = "return freeze(definition);"
ALL_QUESTIONS = "definition.pages.flatMap((page) => page.questions)"

BROKEN_READING = {
    # The device runs a survey other than the one with the link's hash
    "channels mixed up when they are shared": Mutant(
        "definition.js",
        "const text = JSON.stringify(value);",
        "const text = JSON.stringify([value.kind, value.k]);",
        "two",
    ),
    "a hundred times the weight of the truth": Mutant(
        "definition.js",
        RETURN_DEFINITION,
        f"for (const {{ channel }} of {ALL_QUESTIONS}) channel.T *= 100; {RETURN_DEFINITION}",
        "two",
    ),
    "a question that loses its opt-out": Mutant(
        "definition.js",
        RETURN_DEFINITION,
        f"for (const each of {ALL_QUESTIONS}) each.opt_out = ''; {RETURN_DEFINITION}",
        "two",
    ),
    # Built-in limits are missing
    "no limits": Mutant(
        "definition-channels.js", "if (value > limit) throw", "if (false) throw", "two"
    ),
    "limits of the first question only": Mutant(
        "definition.js",
        f"of {ALL_QUESTIONS}) {{\n    checkRatio",
        f"of {ALL_QUESTIONS}.slice(0, 1)) {{\n    checkRatio",
        "two",
    ),
    "no limit for the total": Mutant(
        "definition.js",
        "checkRatio(totalRatio(definition), LIMITS.totalRatio);",
        "",
        "two",
    ),
    "zero weights accepted": Mutant(
        "definition-channels.js", "ensure(T > L && L >= 1)", "ensure(T > L)", "two"
    ),
    "T = L accepted": Mutant(
        "definition-channels.js", "ensure(T > L && L >= 1)", "ensure(T >= L && L >= 1)", "two"
    ),
    "rows of unequal sum accepted": Mutant(
        "definition-channels.js", "ensure(BigInt(total) === sum)", "ensure(true)", "two"
    ),
    "totals above a word accepted": Mutant(
        "definition-channels.js", "ensure(total <= MAX_WEIGHT_TOTAL)", "ensure(true)", "two"
    ),
    "unknown keys accepted": Mutant(
        "definition-structure.js", "ensure(unknown === undefined)", "ensure(true)", "two"
    ),
    "the hash not compared with the link's": Mutant(
        "definition.js", 'if (prefix === "") return;', "return;", "two"
    ),
    "a link with one digit of the hash accepted": Mutant(
        "definition.js", "{16,64}$/i", "{1,64}$/i", "two"
    ),
    "the link's hash ignored": Mutant(
        "definition.js", "expectedPrefix: link.prefix }", 'expectedPrefix: "" }', "two"
    ),
    "any sample of questions accepted": Mutant(
        "report.js", "checkDrawn(definition, circumstances.drawn);", "", "ten"
    ),
    # Sampled questions and the label
    "only the first seven groups are sampled": Mutant(
        "report.js",
        "drawSome(sampling.groups, sampling.draw, uniformBelow)",
        "drawSome(sampling.groups.slice(0, 7), sampling.draw, uniformBelow)",
        "ten",
    ),
    "the last of many groups is never sampled": Mutant(
        "report.js",
        "drawSome(sampling.groups, sampling.draw, uniformBelow)",
        "drawSome(sampling.groups.slice(0, 11), sampling.draw, uniformBelow)",
        "twelve",
    ),
    # Joint responses
    "a joint response randomized question by question": Mutant(
        "report.js", "if (truth !== undefined && joint) {", "if (false) {", "joint"
    ),
    "a joint response drawn twice": Mutant(
        "report.js", "if (!jointCodes.has(id)) drawJointly", "drawJointly", "joint"
    ),
    "combinations numbered the other way": Mutant(
        "mechanism.js",
        "sum * size + indexBelow(size, truths[i])",
        "sum + sizes.slice(0, i).reduce((a, b) => a * b, 1) * indexBelow(size, truths[i])",
        "joint",
    ),
    "the second of two joint answers without randomization": Mutant(
        "report.js",
        "codes.set(id, reports[i]);",
        "codes.set(id, i === 1 ? truths.get(id) : reports[i]);",
        "joint",
    ),
    "the third of four items without randomization": Mutant(
        "mechanism.js",
        "truth[bit] ^ flip)",
        "truth[bit] ^ (bit === 2 ? 0 : flip))",
        "items",
    ),
    "items numbered the other way": Mutant(
        "report.js",
        "codes.set(id, reports[i]);",
        "codes.set(id, reports[channel.kind === 'half_space' ? channel.m - 1 - i : i]);",
        "items",
    ),
    "a joint response counts as its parts": Mutant(
        "privacy-loss.js", "if (!joint) return ratio(channel);", "return ratio(channel);", "joint"
    ),
    "linked questions missing in the label": Mutant(
        "privacy-loss.js",
        LINKED_RATIO,
        "...ownRatio,",
        "routed",
    ),
    "posteriors rounded down in the label": Mutant(
        "privacy-loss.js", "(dividend + divisor - 1n) / divisor", "dividend / divisor", "two"
    ),
    "frequencies of the truth for every answer": Mutant(
        "privacy-loss.js",
        "perHundred(otherWeight, totalWeight)",
        "perHundred(ownWeight, totalWeight)",
        "two",
    ),
}

CIRCUMSTANCES = "{ ...link, drawn }"

BROKEN_VISITS = {
    "true answers in the stratum": Mutant(
        "main.js", CIRCUMSTANCES, "{ ...link, drawn, stratum: JSON.stringify(answers) }", "two"
    ),
    "all questions asked without sampling": Mutant(
        "visit.js",
        "({ drawn, orders } = drawQuestionsAndOrders(survey.definition, getRandomValues))",
        "drawn = null",
        "ten",
    ),
    "the same report id for all": Mutant(
        "main.js", "drawBytes(getRandomValues, 16)", "new Uint8Array(16)", "two"
    ),
    "answers stored on the device": Mutant(
        "visit.js",
        "function send() {",
        "function send() { localStorage.setItem('a', answers.q0);",
        "two",
    ),
    "answers remembered after sending": Mutant("visit.js", "forget();\n    }", "}", "two"),
    "words not wiped after sending": Mutant(
        "main.js",
        "  } finally {\n    uniformBelow.wipe();\n  }",
        "  }",
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
    "cookies sent": Mutant("transport.js", 'credentials: "omit"', 'credentials: "include"', "two"),
    "a new report replaces a stored one": Mutant(
        "outbox.js",
        'stored.state === "empty" ? keep({ state: "pending", body }) : stored',
        'keep({ state: "pending", body })',
        "two",
    ),
    "a survey under a second name": Mutant(
        "definition.js", "ensure(definition.slug === slug)", "ensure(true)", "two"
    ),
    "the report stored after its arrival": Mutant(
        "outbox.js",
        'settle(body, { state: "sent" })',
        'settle(body, { state: "sent", body })',
        "two",
    ),
}
