/**
 * A survey in a form of one's own: opens its link, randomizes the answers once, and delivers the report.
 */

import { loadDefinition } from "../src/definition.js";
import { parseAddress, parseLink } from "../src/link.js";
import { attempt, createOutbox } from "../src/outbox.js";
import { createUniformBelow, drawBytes } from "../src/random.js";
import { drawQuestions, makeReport } from "../src/report.js";
import {
  createPause,
  obstacleOf,
  requestDefinition,
  sendReport,
  sendUntilAnswered,
} from "../src/transport.js";

/**
 * @typedef {import("../src/answers.js").Answers} Answers
 * @typedef {import("../src/answers.js").Drawn} Drawn
 * @typedef {import("../src/definition.js").Definition} Definition
 * @typedef {import("../src/outbox.js").DeviceStorage} DeviceStorage
 * @typedef {import("../src/outbox.js").Entry} Entry
 * @typedef {import("../src/outbox.js").Outbox} Outbox
 * @typedef {import("../src/transport.js").Obstacle} Obstacle
 * @typedef {(seconds: number, reason: "network" | "busy" | "many") => void} OnWaiting  called before
 *   each pause between two attempts to send
 * @typedef {object} Device  what the package uses of the browser
 * @property {Crypto} crypto
 * @property {typeof globalThis.fetch} fetch
 * @property {DeviceStorage | null} storage  null if the browser denies it
 * @property {Pick<LockManager, "request"> | undefined} locks
 * @property {(seconds: number) => Promise<void>} wait  pauses between two attempts to send
 * @typedef {object} OpenSurvey
 * @property {Readonly<Definition>} definition  verified against the hash in the link
 * @property {Drawn} drawn  ids of the questions to ask this person; null: all
 * @property {Outbox} outbox  holds the only report of this survey on this device
 * @property {(answers: Answers, onWaiting?: OnWaiting) => Promise<Entry>} submit
 * @property {(onWaiting?: OnWaiting) => Promise<Entry>} resume
 */

/** Milliseconds until all tabs see what one of them has stored. */
const STORAGE_DELAY = 100;

/** @type {Record<Obstacle | "no_hash", string>} */
const OBSTACLES = {
  randomness: "this device has no cryptographic random generator",
  crypto: "WebCrypto is missing: the page needs https and a current browser",
  missing: "the server has no survey at this address (expected https://SERVER/s/SLUG#d=HASH)",
  closed: "the survey is closed",
  not_open: "the survey is not open yet",
  full: "the survey has all its responses",
  unavailable:
    "the definition did not load: the network failed, or SURVEY_CLIENT_ORIGINS of the server does not" +
    " list the origin of this page",
  unexpected: "the survey could not be opened",
  malformed: "the definition is malformed, or belongs to another address",
  other_definition: "the definition does not have the hash in the link",
  other_version: "the link belongs to an earlier version of the survey",
  too_weak: "the definition protects answers less than every device requires",
  damaged_link: "the link is damaged (expected https://SERVER/s/SLUG#d=HASH)",
  invitation_needed: "the link must contain an invitation that is still unused",
  no_hash:
    "the link must contain the hash of the definition (expected https://SERVER/s/SLUG#d=HASH)",
};

/** The survey cannot be opened on this device; `obstacle` names the reason. */
export class OpeningError extends Error {
  /** @param {Obstacle | "no_hash"} obstacle @param {unknown} [cause] */
  constructor(obstacle, cause) {
    super(OBSTACLES[obstacle]);
    this.obstacle = obstacle;
    this.cause = cause;
  }
}

/** Return what the package uses of this browser. @returns {Device} */
export function thisDevice() {
  /** @type {import("../src/transport.js").Pause | undefined} */
  let pause;
  return {
    crypto: globalThis.crypto,
    fetch: globalThis.fetch,
    storage: attempt(() => globalThis.localStorage) ?? null,
    locks: attempt(() => lockManager(navigator)),
    wait(seconds) {
      pause ??= createPause(window);
      return pause.begin(seconds);
    },
  };
}

/** Return what lets tabs take turns; old browsers lack it. @param {Navigator} navigator */
function lockManager({ locks }) {
  return locks;
}

/**
 * Load the definition of a survey, and verify it against the hash in the link.
 *
 * @param {string} link  the survey's link or a respondent's invitation, with the part after the "#"
 * @param {Device} [device]
 * @returns {Promise<OpenSurvey>}  rejected with an OpeningError
 */
export async function openSurvey(link, device = thisDevice()) {
  const url = attempt(() => new URL(link));
  if (!url) throw new OpeningError("damaged_link");
  const parts = parseLink(url.hash);
  if (parts.prefix === "") throw new OpeningError("no_hash");
  // Other hosts' copies of the respondents' page name their server in the page, and not in the link.
  const path = parseAddress({ querySelector: () => null }, url);
  const address = { ...path, server: `${url.origin}${path.server}` };
  try {
    const bytes = await requestDefinition(device, address, parts);
    const definition = await loadDefinition(bytes, address.slug, parts, device.crypto.subtle);
    return createSurvey(definition, address.server, parts, device);
  } catch (error) {
    throw new OpeningError(address.slug === "" ? "missing" : obstacleOf(error), error);
  }
}

/**
 * @param {Readonly<Definition>} definition
 * @param {string} server  the start of the survey's addresses
 * @param {import("../src/link.js").Link} link
 * @param {Device} device
 * @returns {OpenSurvey}
 */
function createSurvey(definition, server, link, device) {
  const outbox = outboxOf(definition, server, device.storage);
  const drawn = withRandomness(device, (uniformBelow) => drawQuestions(definition, uniformBelow));

  /** @param {string} body @param {OnWaiting} onWaiting */
  async function deliver(body, onWaiting) {
    const send = () => sendReport(device.fetch, `${server}/reports`, body);
    const outcome = await sendUntilAnswered(send, (seconds, { reason }) => {
      onWaiting(seconds, reason);
      return device.wait(seconds);
    });
    return outcome.outcome === "accepted" ? outbox.accepted(body) : outbox.refused(body, outcome);
  }

  /** Send the stored report; another tab may have stored it. @param {OnWaiting} [onWaiting] */
  async function resume(onWaiting = () => {}) {
    const entry = outbox.read();
    return entry.state === "pending" ? deliver(entry.body, onWaiting) : entry;
  }

  /** @param {string} body @param {OnWaiting | undefined} onWaiting */
  async function storeAndSend(body, onWaiting) {
    const storeInTurn = async () => {
      outbox.store(body);
      await new Promise((resolve) => setTimeout(resolve, STORAGE_DELAY));
    };
    // Some pages, such as sandboxed frames, may not use locks.
    await (device.locks?.request(server, storeInTurn).catch(storeInTurn) ?? storeInTurn());
    return resume(onWaiting);
  }

  return {
    definition,
    drawn,
    outbox,
    resume,

    /**
     * Randomize the answers once, store the report and send it until the server answers. If this
     * device already has a report of the survey, that one is sent instead.
     *
     * Throws an UnansweredError, before it draws anything, if a question has neither an answer nor a
     * "prefer not to say".
     *
     * @param {Answers} answers
     * @param {OnWaiting} [onWaiting]
     */
    submit(answers, onWaiting) {
      const body = withRandomness(device, (uniformBelow, getRandomValues) =>
        makeReport(definition, answers, uniformBelow, drawBytes(getRandomValues, 16), {
          ...link,
          drawn,
        }),
      );
      return storeAndSend(body, onWaiting);
    },
  };
}

/**
 * Create the outbox under the whole address of the survey, because one page can ask for surveys of
 * several servers. A shared device stores nothing new; a report that it stored before still counts.
 *
 * @param {Readonly<Definition>} definition
 * @param {string} server
 * @param {DeviceStorage | null} storage
 */
function outboxOf(definition, server, storage) {
  const onDevice = createOutbox(storage, server, definition.report_bytes);
  const isFresh = definition.kiosk && onDevice.read().state === "empty";
  return isFresh ? createOutbox(null, server) : onDevice;
}

/**
 * Let an action draw random numbers, and wipe those that it did not use.
 *
 * @template T
 * @param {Device} device
 * @param {(uniformBelow: import("../src/random.js").UniformBelow,
 *   getRandomValues: import("../src/random.js").GetRandomValues) => T} action
 */
function withRandomness({ crypto }, action) {
  /** @type {import("../src/random.js").GetRandomValues} */
  const getRandomValues = (array) => crypto.getRandomValues(array);
  const uniformBelow = createUniformBelow(getRandomValues);
  try {
    return action(uniformBelow, getRandomValues);
  } finally {
    uniformBelow.wipe();
  }
}
