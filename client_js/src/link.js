/**
 * What the address says: the survey, its hash, and an invitation.
 */

import { DefinitionError } from "./demand.js";

/**
 * @typedef {{prefix: string, invitation: string, stratum: string, isTaken: boolean}} Link  what a
 *   link carries behind its "#", each part empty when it does not; `isTaken`: the page has taken
 *   the invitation out before
 */

/** 32 bytes in base64url: the last character carries two zero bits. */
const TOKEN = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

const MOST_STRATUM = 60;

/** As much of a definition's hash as every link carries, or more. */
const PREFIX = /^([0-9a-f]{16,64})?$/;

/** Of all ways to write an address that reach one survey, the only one that is taken. */
const ADDRESS = /^\/s\/([a-z0-9]+(?:-[a-z0-9]+)*)\/?$/;

/**
 * The slug an address names, "" when it is not written in the one way that counts.
 *
 * What is kept on the device is found by the slug. A second spelling, /s/work%70lace, would reach
 * the same survey past the mark of the first report: two reports would average the randomness away.
 *
 * @param {string} pathname  as the address bar has it, not decoded
 */
export function parseSlug(pathname) {
  return ADDRESS.exec(pathname)?.[1] ?? "";
}

/**
 * What a link carries; a stratum only ever comes with the invitation that is good for it.
 *
 * @param {string} hash  from the "#" on
 * @returns {Link}
 */
export function parseLink(hash) {
  const parts = new URLSearchParams(hash.slice(1));
  const [prefix, invitation, stratum] = ["d", "i", "s"].map((name) => parts.get(name) ?? "");
  return { prefix, invitation, stratum, isTaken: parts.get("i") === "" && stratum === "" };
}

/** @param {Link} link */
export function checkLink({ prefix, invitation, stratum, isTaken }) {
  if (isTaken)
    throw new DefinitionError("invitation_needed", "the link's invitation was taken out");
  const isInvited = TOKEN.test(invitation) && prefix !== "";
  const isWhole = PREFIX.test(prefix) && (invitation ? isInvited : stratum === "");
  if (isWhole && stratum.length <= MOST_STRATUM && !stratum.includes("\0")) return;
  throw new DefinitionError("damaged_link", "the link's invitation is not whole");
}
