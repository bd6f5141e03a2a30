/** What the tests share: channels, definitions, storage and generators that do as they are told. */

import { createHash } from "node:crypto";
import { tableTruths } from "../src/weight-table.js";

/** A subset-selection channel; d = 1 is generalized randomized response. */
export function channel(k, T, L, d = 1) {
  return { kind: "subset_selection", k, d, T, L };
}

/** m bits; without limits unless told otherwise. */
export function bits(m, T, L, { alone = 0, s = m - alone, sampled = m } = {}) {
  return { kind: "bit_vector", m, s, alone, sampled, T, L };
}

/** A weight table of a shape. */
export function table(shape, noAnswers = 0) {
  return { kind: "weight_table", table: shape, no_answers: noAnswers };
}

const named = (n) => Array.from({ length: n }, (_, i) => ({ id: `o${i}`, label: `Option ${i}` }));

/** A question over options o0, o1, ...; the last is the opt-out unless told otherwise. */
export function question(id, its, { optOut, text = `Question ${id}`, ...changes } = {}) {
  const silent = its.kind === "weight_table" ? its.no_answers : 0;
  const options = named(its.k ?? its.m ?? tableTruths(its.table) + silent);
  return {
    id,
    type: its.kind === "bit_vector" ? "multiple_choice" : "single_choice",
    text,
    help: "",
    options,
    grid: null,
    max_ticks: its.kind === "bit_vector" ? its.s : 0,
    alone: its.kind === "bit_vector" ? its.alone : 0,
    opt_out: optOut ?? `o${options.length - 1}`,
    not_applicable: "",
    ask_if: null,
    mechanism: "grr",
    channel: its,
    ...changes,
  };
}

/** A multiple choice whose ticks are reported as a whole, by patterns. */
export function pickSome(
  id,
  its,
  options,
  { alone = 1, ticks = options - alone, ...changes } = {},
) {
  const type = "multiple_choice";
  const kept = {
    options: named(options),
    alone,
    max_ticks: ticks,
    type,
    optOut: `o${options - 1}`,
  };
  return question(id, its, { ...kept, mechanism: "subsets", ...changes });
}

/** A number from 0 in steps of 1, with options o0, ... that are no answer, the last the opt-out. */
export function amount(id, its, { grid = {}, ...changes } = {}) {
  const points = tableTruths(its.table);
  return question(id, its, {
    type: "number",
    options: named(its.no_answers),
    optOut: its.no_answers ? `o${its.no_answers - 1}` : "",
    grid: { low: 0, step: 1, points, decimals: 0, unit: "hours", ...grid },
    mechanism: "square_wave",
    ...changes,
  });
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

/** Every sequence of draws a computation can make, with its result: a walk through all branches. */
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
  const kept = new Map();
  return {
    kept,
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => void kept.set(key, String(value)),
    removeItem: (key) => void kept.delete(key),
  };
}
