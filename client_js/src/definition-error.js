/**
 * Building blocks of the checks of a definition: conditions, and the error if one fails.
 */

/**
 * @typedef {"malformed" | "other_definition" | "other_version" | "too_weak" | "damaged_link" | "invitation_needed"
 *   } Reason
 */

/**
 * The device rejects a definition for this `reason`. Errors on the device have no messages: every
 * respondent would load them, nobody would read them, and one could contain an answer. The server
 * checks the same rules before publishing, and names the wrong key and its value.
 */
export class DefinitionError extends Error {
  /** @param {Reason} reason @param {string} [current]  id of the version that the server has now */
  constructor(reason, current = "") {
    super();
    this.reason = reason;
    this.current = current;
  }
}

/** @param {unknown} condition @returns {asserts condition} */
export function ensure(condition) {
  if (!condition) throw new DefinitionError("malformed");
}

/** @param {Record<string, any>} value @param {readonly string[]} names */
export function ensureTexts(value, names) {
  ensure(names.every((name) => typeof value[name] === "string"));
}

/** @param {any} value @param {number} [min] @param {number} [max] */
export function isInteger(value, min = 0, max = Number.MAX_SAFE_INTEGER) {
  return Number.isSafeInteger(value) && value >= min && value <= max;
}

/** Ensure that the ids of all parts are different and not empty. @param {{id: string}[]} parts */
export function ensureDistinct(parts) {
  const ids = parts.map((part) => part.id);
  ensure(!ids.includes("") && new Set(ids).size === ids.length);
}
