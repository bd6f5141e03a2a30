/**
 * Loads the definition and names the obstacle if this device cannot start.
 */

import { readDefinition } from "./definition.js";
import { DefinitionError, ensure } from "./definition-error.js";
import { checkLink } from "./link.js";
import { drawBytes, NoRandomnessError } from "./random.js";
import { checkRoom } from "./report.js";
import { fetchDefinition, UnavailableError } from "./transport.js";

/**
 * @typedef {import("./random.js").GetRandomValues} GetRandomValues
 * @typedef {import("./link.js").Link} Link
 * @typedef {import("./definition-error.js").Reason} Reason
 * @typedef {"randomness" | "crypto" | "missing" | "closed" | "not_open" | "full" | "unavailable"
 *   | "unexpected" | Reason} Obstacle
 */

/** WebCrypto is missing because the browser is old or the address lacks https. */
export class CryptoMissingError extends Error {
  constructor() {
    super("this browser does not offer WebCrypto here");
    this.name = "CryptoMissingError";
  }
}

/**
 * Return the definition after checking that this device can protect the answers.
 *
 * @param {Window & typeof globalThis} window
 * @param {string} slug  from the address
 * @param {Link} link
 * @param {GetRandomValues} getRandomValues
 */
export async function loadDefinition({ crypto, fetch }, slug, link, getRandomValues) {
  drawBytes(getRandomValues, 1);
  if (!crypto.subtle) throw new CryptoMissingError();
  checkLink(link);
  const bytes = await fetchDefinition(fetch, `/s/${slug}/definition.json`);
  const definition = await readDefinition(bytes, {
    digest: (content) => crypto.subtle.digest("SHA-256", content),
    expectedPrefix: link.prefix,
  });
  // Under a second name, the same survey could get two reports from this device.
  ensure(definition.slug === slug, `the definition belongs to ${definition.slug}, not to ${slug}`);
  if (definition.access === "invitation" && link.invitation === "") {
    throw new DefinitionError("invitation_needed", "the survey is for people who were invited");
  }
  checkRoom(definition, { ...link, drawn: null });
  return definition;
}

/**
 * @param {unknown} error
 * @returns {Obstacle}
 */
export function obstacleOf(error) {
  if (error instanceof NoRandomnessError) return "randomness";
  if (error instanceof CryptoMissingError) return "crypto";
  if (error instanceof DefinitionError) return error.reason;
  if (!(error instanceof UnavailableError)) return "unexpected";
  const { status, name } = error.refusal;
  if (name === "not-open") return "not_open";
  if (status === 404) return "missing";
  if (status !== 410) return "unavailable";
  return name === "full" ? "full" : "closed";
}
