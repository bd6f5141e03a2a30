/**
 * Whether this survey can be asked on this device: its definition, or the reason why not.
 */

import { DefinitionError, readDefinition } from "./definition.js";
import { drawBytes, NoRandomnessError } from "./random.js";
import { checkRoom } from "./report.js";
import { fetchDefinition, UnavailableError } from "./transport.js";

/**
 * @typedef {"randomness" | "crypto" | "missing" | "closed" | "unavailable" | "unexpected"
 *   | import("./definition.js").Reason} Obstacle
 */

/** WebCrypto is missing: an old browser, or an address without https. */
export class CryptoMissingError extends Error {
  constructor() {
    super("this browser does not offer WebCrypto here");
    this.name = "CryptoMissingError";
  }
}

/**
 * The definition, once it is certain that this device could keep its promise.
 *
 * @param {Window & typeof globalThis} window
 * @param {string} address  path of the survey, /s/<slug>
 * @param {import("./random.js").GetRandomValues} getRandomValues
 */
export async function loadDefinition({ crypto, fetch, location }, address, getRandomValues) {
  drawBytes(getRandomValues, 1);
  if (!crypto.subtle) throw new CryptoMissingError();
  const bytes = await fetchDefinition(fetch, `${address}/definition.json`);
  const definition = await readDefinition(bytes, {
    digest: (content) => crypto.subtle.digest("SHA-256", content),
    expectedPrefix: new URLSearchParams(location.hash.slice(1)).get("d") ?? "",
  });
  checkRoom(definition);
  return definition;
}

/**
 * @param {unknown} error
 * @returns {Obstacle}
 */
export function reasonFor(error) {
  if (error instanceof NoRandomnessError) return "randomness";
  if (error instanceof CryptoMissingError) return "crypto";
  if (error instanceof DefinitionError) return error.reason;
  if (!(error instanceof UnavailableError)) return "unexpected";
  if (error.status === 404) return "missing";
  return error.status === 410 ? "closed" : "unavailable";
}
