// Runs whole visits of the shipped main.js, from the link to the acknowledgment, without a browser:
// stand-ins replace the modules that build pages; all other modules are the served ones.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** Modules that run when they are loaded: every visit loads them under another address. */
const SCRIPTS = ["opening.js", "main.js"];

let visits = 0;

/** The address of the words, which all visits request alike. */
const WORDS = "/words.en.json";

/**
 * Return a function that makes one visit and returns a record of it.
 *
 * @param client  folder of the client's files
 * @param replaced  names of the modules that build pages
 * @param canonical  what the server serves as the definition
 */
export async function prepareVisits(client, replaced, canonical) {
  const folder = `${client}/visited`;
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(client)) {
    if (name.endsWith(".js")) copyFileSync(`${client}/${name}`, `${folder}/${name}`);
  }
  for (const name of replaced) await replace(client, folder, name);
  const scripts = SCRIPTS.map((name) => [name, readFileSync(`${folder}/${name}`, "utf8")]);
  const texts = readFileSync(`${client}/words.en.json`, "utf8");
  return async (visitor) => {
    const device = createDevice(canonical, texts, visitor);
    for (const [name, value] of Object.entries(device.globals)) {
      Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    }
    visits += 1;
    const fresh = (name) => `visit${visits}-${name}`;
    for (const [name, source] of scripts) {
      writeFileSync(
        `${folder}/${fresh(name)}`,
        SCRIPTS.reduce((text, script) => text.replace(`./${script}`, `./${fresh(script)}`), source),
      );
      await import(pathToFileURL(`${folder}/${fresh(name)}`).href);
    }
    // Nothing here waits for a network or a clock, so one turn later the visit is complete.
    await new Promise((resolve) => setImmediate(resolve));
    return device.record();
  };
}

/** Replace a module by one with the same exports, which call `page` or return an empty list. */
async function replace(client, folder, module) {
  const names = Object.keys(await import(pathToFileURL(`${client}/${module}`).href));
  const lines = names.map(
    (name) => `export const ${name} = (...args) => globalThis.page.${name}?.(...args) ?? [];`,
  );
  writeFileSync(`${folder}/${module}`, lines.join("\n"));
}

/**
 * Return the globals of a browser at an address with `slug` and `hash`, used by one respondent.
 * `failures` answers the first posts: a status, or 0 for no answer. `stored` is the storage of an
 * earlier visit, `meanwhile` the entries that another tab stores before the report is sent.
 */
function createDevice(canonical, texts, { slug, hash, answers, words, idBytes, failures, ...other }) {
  const nextFailures = [...failures];
  const [requests, storageWrites, pools, stored] = [[], [], [], new Map(other.stored)];
  let rememberedAnswer = () => undefined;
  const page = visitor(answers, (answerTo) => {
    rememberedAnswer = answerTo;
    for (const [key, value] of other.meanwhile) stored.set(key, value);
  });
  const localStorage = {
    getItem: (key) => stored.get(key) ?? null,
    setItem(key, value) {
      storageWrites.push([key, value]);
      stored.set(key, value);
    },
    removeItem: (key) => stored.delete(key),
  };
  const crypto = {
    getRandomValues(array) {
      pools.push(array);
      if (array instanceof Uint32Array) array.forEach((_, i) => (array[i] = words[i % words.length]));
      else array.forEach((_, i) => (array[i] = idBytes[i % idBytes.length]));
      return array;
    },
    subtle: {
      digest: async (_, bytes) =>
        Uint8Array.from(createHash("sha256").update(bytes).digest()).buffer,
    },
  };
  const fetch = async (url, { signal, ...options }) => {
    if (url === WORDS) return { json: async () => JSON.parse(texts) };
    requests.push({ url, ...options });
    const bytes = new TextEncoder().encode(canonical);
    if (options.method !== "POST") return { status: 200, arrayBuffer: () => bytes };
    const status = nextFailures.shift() ?? 201;
    if (status === 0) throw new TypeError("no network");
    return { status, headers: new Headers() };
  };
  const location = { pathname: `/s/${slug}`, hash, reload() {} };
  const history = { replaceState() {} };
  const locks = { request: async (_, callback) => callback() };
  const navigator = { languages: ["en"], locks };
  // No time passes between two attempts.
  const timers = { setTimeout: queueMicrotask, clearTimeout() {}, addEventListener() {} };
  const window = { ...timers, localStorage, crypto, fetch, location };
  const listed = { getAttribute: () => `en ${WORDS} sha256-` };
  const document = {
    documentElement: { dataset: {} },
    activeElement: null,
    getElementById: () => null,
    querySelector: () => null,
    querySelectorAll: () => [listed],
  };
  const record = () => ({
    requests,
    storageWrites,
    unwiped: pools.filter((pool) => pool instanceof Uint32Array && pool.some((word) => word !== 0))
      .length,
    remembered: Object.keys(answers).filter((question) => rememberedAnswer(question) !== undefined),
  });
  const globals = { page, window, document, location, history, navigator, crypto, fetch };
  return { globals, record };
}

/** A respondent who starts, answers the shown questions, confirms skipped ones, and sends. */
function visitor(answers, beforeSending) {
  return {
    element: () => ({ cloneNode: () => null }),
    createDisplay: () => ({ show: (build) => build().visit?.(), clear() {} }),
    startView: ({ onStart }) => ({ visit: onStart }),
    questionView: ({ pages, at, onAnswer, onContinue }) => ({
      visit() {
        for (const { id } of pages[at].questions) if (id in answers) onAnswer(id, answers[id]);
        if (onContinue(new Set()).length > 0) onContinue(new Set());
      },
    }),
    reviewView: ({ answerTo, onSend }) => ({
      visit() {
        beforeSending(answerTo);
        onSend();
      },
    }),
  };
}
