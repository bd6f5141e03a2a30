/**
 * What every check of a definition is made of: a demand, and the error when it is not met.
 */

/**
 * @typedef {"malformed" | "other_definition" | "too_weak" | "damaged_link" | "invitation_needed"
 *   } Reason
 */

/** A definition this device will not ask; `reason` says of which kind the refusal is. */
export class DefinitionError extends Error {
  /** @param {Reason} reason @param {string} message */
  constructor(reason, message) {
    super(message);
    this.name = "DefinitionError";
    this.reason = reason;
  }
}

/** @param {unknown} holds @param {string} message @returns {asserts holds} */
export function demand(holds, message) {
  if (!holds) throw new DefinitionError("malformed", message);
}

/** @param {Record<string, any>} value @param {string[]} names @param {string} place */
export function demandTexts(value, names, place) {
  for (const name of names) demand(typeof value[name] === "string", `${place}.${name} is no text`);
}

/** @param {any} value @param {number} [least] @param {number} [most] */
export function isInteger(value, least = 0, most = Number.MAX_SAFE_INTEGER) {
  return Number.isSafeInteger(value) && value >= least && value <= most;
}

/** @param {{id: string}[]} parts @param {string} place */
export function demandDistinct(parts, place) {
  const ids = parts.map((part) => part.id);
  demand(!ids.includes("") && new Set(ids).size === ids.length, `${place} share or lack an id`);
}
