/**
 * Survey links: the slug in the path; definition hash and invitation after the "#".
 */

import { DefinitionError } from "./definition-error.js";

/**
 * @typedef {{prefix: string, invitation: string, stratum: string, isTaken: boolean}} Link  the parts of a
 *   link after its "#", "" if missing; `isTaken`: the page has already removed the invitation
 */

/** The start of a test run's slug, and of no survey's. */
const TEST_RUN_PREFIX = "trial-";

/** 32 bytes in base64url: the last character carries two zero bits. */
const TOKEN = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

const MAX_STRATUM = 60;

/** The start of a definition's hash, at least as long as in every link. */
const PREFIX = /^([0-9a-f]{16,64})?$/;

/** The only accepted spelling of a survey's path. */
const ADDRESS = /^\/s\/([a-z0-9]+(?:-[a-z0-9]+)*)\/?$/;

/** Whether a slug is that of a test run, whose server stores no report. @param {string} slug */
export function isTestRun(slug) {
  return slug.startsWith(TEST_RUN_PREFIX);
}

/**
 * Return the slug in a path, or "" unless it has the canonical spelling.
 *
 * The device stores its report under the slug. Another spelling, /s/work%70lace, would reach the same
 * survey without finding that report, and a second report would weaken the first one's protection.
 *
 * @param {string} pathname  as the address bar has it, not decoded
 */
export function parseSlug(pathname) {
  return ADDRESS.exec(pathname)?.[1] ?? "";
}

/**
 * Return the parts of a link. A stratum is only valid together with its invitation.
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
    throw new DefinitionError("invitation_needed", "the invitation was removed from the link");
  const isInvited = TOKEN.test(invitation) && prefix !== "";
  const isWhole = PREFIX.test(prefix) && (invitation ? isInvited : stratum === "");
  if (isWhole && stratum.length <= MAX_STRATUM && !stratum.includes("\0")) return;
  throw new DefinitionError("damaged_link", "the link's invitation is incomplete");
}
