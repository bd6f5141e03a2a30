/** Channels, definitions, storage and deterministic generators for the tests. */

import { createHash } from "node:crypto";
import { tableTruths } from "../src/weight-table.js";

/** A subset-selection channel; d = 1 is generalized randomized response. */
export function channel(k, T, L, d = 1) {
  return { kind: "subset_selection", k, d, T, L };
}

/** A channel of m bits; by default, all bits are reported and any number can be 1. */
export function bits(m, T, L, { alone = 0, s = m - alone, sampled = m } = {}) {
  return { kind: "bit_vector", m, s, alone, sampled, T, L };
}

/** All bits in one report: with weight `near` at least `agreements` of them are right. */
export function halfSpace(m, agreements, near, far, { alone = 0, s = m - alone } = {}) {
  return { kind: "half_space", m, s, alone, agreements, near, far };
}

/** A weight table of a shape. */
export function table(shape, noAnswers = 0) {
  return { kind: "weight_table", table: shape, no_answers: noAnswers };
}

const numberedOptions = (n) =>
  Array.from({ length: n }, (_, i) => ({ id: `o${i}`, label: `Option ${i}` }));

/** A question over options o0, o1, ...; by default, the last is the opt-out. */
export function question(id, design, { optOut, text = `Question ${id}`, ...changes } = {}) {
  const noAnswers = design.kind === "weight_table" ? design.no_answers : 0;
  const hasTicks = design.m !== undefined;
  const options = numberedOptions(design.k ?? design.m ?? tableTruths(design.table) + noAnswers);
  return {
    id,
    type: hasTicks ? "multiple_choice" : "single_choice",
    text,
    help: "",
    options,
    grid: null,
    max_ticks: hasTicks ? design.s : 0,
    alone: hasTicks ? design.alone : 0,
    opt_out: optOut ?? `o${options.length - 1}`,
    not_applicable: "",
    ask_if: null,
    mechanism: "grr",
    channel: design,
    ...changes,
  };
}

/** A multiple choice whose ticks are reported as a whole, by patterns. */
export function pickSome(
  id,
  design,
  options,
  { alone = 1, ticks = options - alone, ...changes } = {},
) {
  const type = "multiple_choice";
  const fields = {
    options: numberedOptions(options),
    alone,
    max_ticks: ticks,
    type,
    optOut: `o${options - 1}`,
  };
  return question(id, design, { ...fields, mechanism: "subsets", ...changes });
}

/** A number from 0 in steps of 1, with options o0, ... for no answer; the last is the opt-out. */
export function amount(id, design, { grid = {}, ...changes } = {}) {
  const points = tableTruths(design.table);
  return question(id, design, {
    type: "number",
    options: numberedOptions(design.no_answers),
    optOut: design.no_answers ? `o${design.no_answers - 1}` : "",
    grid: { low: 0, step: 1, points, decimals: 0, unit: "hours", ...grid },
    mechanism: "square_wave",
    ...changes,
  });
}

/** Return single choices of some options that are randomized as one, with weights T and L. */
export function jointQuestions(sizes, T, L) {
  const ids = sizes.map((_, i) => `j${i}`);
  const K = sizes.reduce((product, size) => product * size, 1);
  const joint = { questions: ids, channel: channel(K, T, L) };
  return sizes.map((k, i) => {
    const part = channel(k, T + (K / k - 1) * L, (K / k) * L);
    return question(ids[i], part, { joint, optOut: "" });
  });
}

/** Return yes/no questions that are randomized in one half-space, whose parts have weights T and L. */
export function itemQuestions(space, T, L) {
  const ids = Array.from({ length: space.m }, (_, i) => `j${i}`);
  const joint = { questions: ids, channel: space };
  return ids.map((id) => question(id, channel(2, T, L), { joint, optOut: "" }));
}

/** Return a definition as the server writes it, one page per question. */
export function definitionOf(list, changes = {}) {
  return {
    allow_skip_logic: false,
    contact: "",
    format: 1,
    introduction: "",
    language: "en",
    pages: list.map((member) => ({ title: "", questions: [member] })),
    report_bytes: 512,
    sampling: null,
    slug: "workplace",
    thanks: "",
    title: "Workplace",
    version: 1,
    ...changes,
  };
}

export function bytesOf(definition) {
  return new TextEncoder().encode(JSON.stringify(definition));
}

export function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

export async function digest(bytes) {
  return Uint8Array.from(Buffer.from(sha256(bytes), "hex")).buffer;
}

/** Return a definition with an id, as the client reads it. */
export function definitionWithId(list, changes = {}) {
  return { ...definitionOf(list, changes), id: "ab".repeat(32) };
}

/** Return a uniformBelow that replays values and records the n of each draw. */
export function replay(values) {
  const ranges = [];
  const uniformBelow = (n) => {
    ranges.push(n);
    if (ranges.length > values.length) throw new Error("more draws than values");
    return values[ranges.length - 1];
  };
  return Object.assign(uniformBelow, { ranges });
}

/** Yield every sequence of draws that a computation can make, with its result. */
export function* everyRun(compute) {
  let values = [];
  for (;;) {
    const ranges = [];
    const result = compute((n) => {
      const at = ranges.push(n) - 1;
      if (at === values.length) values.push(0);
      return values[at];
    });
    yield { result, ranges, values: [...values] };
    while (values.length > 0 && values[values.length - 1] === ranges[values.length - 1] - 1) {
      values = values.slice(0, -1);
    }
    if (values.length === 0) return;
    values[values.length - 1] += 1;
  }
}

/** Storage like a browser's, shared by tabs. */
export function deviceStorage() {
  const entries = new Map();
  return {
    entries,
    getItem: (key) => entries.get(key) ?? null,
    setItem: (key, value) => void entries.set(key, String(value)),
    removeItem: (key) => void entries.delete(key),
  };
}

/** The rows of a matrix `m` with scales of three points and an opt-out. */
export function matrixRows(rows = ["a", "b"], changes = {}) {
  return rows.map((row) =>
    question(`m_${row}`, channel(4, 3, 1), {
      type: "scale",
      text: `Satisfied with: row ${row}`,
      grid: { low: 1, step: 1, points: 3, decimals: 0, unit: "" },
      topic: "Satisfied with",
      matrix: { id: "m", text: "Satisfied with", row: `row ${row}` },
      ...changes,
    }),
  );
}
