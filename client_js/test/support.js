/** What the tests share: channels, definitions, storage and generators that do as they are told. */

import { createHash } from "node:crypto";

/** A subset-selection channel; d = 1 is generalized randomized response. */
export function channel(k, T, L, d = 1) {
  return { kind: "subset_selection", k, d, T, L };
}

/** A question over options o0, o1, ...; the last is the opt-out unless told otherwise. */
export function question(id, its, { optOut = `o${its.k - 1}`, text = `Question ${id}` } = {}) {
  const options = Array.from({ length: its.k }, (_, i) => ({ id: `o${i}`, label: `Option ${i}` }));
  return { id, type: "single_choice", text, help: "", options, opt_out: optOut, channel: its };
}

/** A definition as the server writes it, one page per question. */
export function definitionOf(asked, changes = {}) {
  return {
    contact: "",
    format: 1,
    introduction: "",
    language: "en",
    pages: asked.map((one) => ({ title: "", questions: [one] })),
    report_bytes: 512,
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

/** A definition that was read: with an id. */
export function known(asked, changes = {}) {
  return { ...definitionOf(asked, changes), id: "ab".repeat(32) };
}

/** uniformBelow that replays values, and notes the n of each draw. */
export function replay(values) {
  const asked = [];
  const uniformBelow = (n) => {
    asked.push(n);
    if (asked.length > values.length) throw new Error("more draws than values");
    return values[asked.length - 1];
  };
  return Object.assign(uniformBelow, { asked });
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
