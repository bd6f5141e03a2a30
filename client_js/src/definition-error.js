/**
 * Building blocks of the checks of a definition: conditions, and the error if one fails.
 */

/**
 * @typedef {"malformed" | "other_definition" | "too_weak" | "damaged_link" | "invitation_needed"
 *   } Reason
 */

/** This device refuses a definition; `reason` says why. */
export class DefinitionError extends Error {
  /** @param {Reason} reason @param {string} message */
  constructor(reason, message) {
    super(message);
    this.name = "DefinitionError";
    this.reason = reason;
  }
}

/** @param {unknown} condition @param {string} message @returns {asserts condition} */
export function ensure(condition, message) {
  if (!condition) throw new DefinitionError("malformed", message);
}

/** @param {Record<string, any>} value @param {string[]} names @param {string} place */
export function ensureTexts(value, names, place) {
  for (const name of names)
    ensure(typeof value[name] === "string", `${place}.${name} is not a text`);
}

/** @param {any} value @param {number} [min] @param {number} [max] */
export function isInteger(value, min = 0, max = Number.MAX_SAFE_INTEGER) {
  return Number.isSafeInteger(value) && value >= min && value <= max;
}

/** @param {{id: string}[]} parts @param {string} place */
export function ensureDistinct(parts, place) {
  const ids = parts.map((part) => part.id);
  ensure(
    !ids.includes("") && new Set(ids).size === ids.length,
    `${place} need distinct ids that are not empty`,
  );
}
