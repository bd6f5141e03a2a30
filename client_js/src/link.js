/**
 * Survey links: the slug in the path; definition hash and invitation after the "#".
 */

import { DefinitionError } from "./definition-error.js";

/**
 * @typedef {{prefix: string, invitation: string, stratum: string, hadInvitation: boolean}} Link  the
 *   parts of a link after its "#", "" if missing; `hadInvitation`: the page has removed an invitation
 * @typedef {{slug: string, collector: string, server: string}} Address  `collector`: the origin that
 *   collects the reports if another host serves the page, otherwise ""; `server`: the start of the
 *   survey's addresses
 */

/** Test runs, and no surveys, have slugs with this prefix. */
const TEST_RUN_PREFIX = "trial-";

/** 32 bytes in base64url: the last character carries two zero bits. */
const TOKEN = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

const MAX_STRATUM = 60;

/** The start of a definition's hash: 16 digits for old definitions, 32 or more for later ones. */
const PREFIX = /^([0-9a-f]{16}|[0-9a-f]{32,64})?$/;

/** The only accepted spelling of a survey's path, and of a slug. */
const PATH = /^\/s\/([a-z0-9]+(?:-[a-z0-9]+)*)\/?$/;
export const SLUG = /^([a-z0-9]+(?:-[a-z0-9]+)*)$/;

/** Whether a slug is that of a test run; the server stores no reports of test runs. @param {string} slug */
export function isTestRun(slug) {
  return slug.startsWith(TEST_RUN_PREFIX);
}

/**
 * Return the survey's slug and its addresses on the server that collects the reports.
 *
 * The slug is in the path, or after the "#" if another host serves the page. It is "" unless it has
 * the canonical spelling: the device stores its report under the slug, so with another spelling,
 * such as /s/work%70lace, it would not find that report. A second report would weaken the protection
 * of the first.
 *
 * @param {Pick<Document, "querySelector">} document  contains the collector if another host serves it
 * @param {Pick<Location, "pathname" | "hash">} location  as the address bar has it, not decoded
 * @returns {Address}
 */
export function parseAddress(document, { pathname, hash }) {
  const collector = document.querySelector('meta[name="collector"]')?.getAttribute("content") ?? "";
  const match = collector === "" ? PATH.exec(pathname) : SLUG.exec(part(hash, "slug"));
  const slug = match?.[1] ?? "";
  return { slug, collector, server: `${collector}/s/${slug}` };
}

/** Return a parameter after the "#" of a link, or "". @param {string} hash @param {string} name */
function part(hash, name) {
  return new URLSearchParams(hash.slice(1)).get(name) ?? "";
}

/**
 * Return the parts of a link. A stratum is only valid together with its invitation.
 *
 * @param {string} hash  from the "#" on
 * @returns {Link}
 */
export function parseLink(hash) {
  const [prefix, invitation, stratum] = ["d", "i", "s"].map((name) => part(hash, name));
  const hadInvitation = stratum === "" && new URLSearchParams(hash.slice(1)).get("i") === "";
  return { prefix, invitation, stratum, hadInvitation };
}

/** Throw DefinitionError if a link is incomplete. @param {Link} link */
export function checkLink({ prefix, invitation, stratum, hadInvitation }) {
  if (hadInvitation) throw new DefinitionError("invitation_needed");
  const isInvited = TOKEN.test(invitation) && prefix !== "";
  const isWhole = PREFIX.test(prefix) && (invitation ? isInvited : stratum === "");
  if (isWhole && stratum.length <= MAX_STRATUM && !stratum.includes("\0")) return;
  throw new DefinitionError("damaged_link");
}

/**
 * Return the link's fragment without the invitation. An empty "i" remains, so that a reload does not
 * start without the invitation.
 *
 * @param {Address} address
 * @param {Link} link
 */
export function withoutInvitation({ slug, collector }, { prefix }) {
  const parameters = { slug: collector && slug, d: prefix };
  const parts = Object.entries(parameters).filter(([, value]) => value !== "");
  return `#${parts.map(([name, value]) => `${name}=${value}&`).join("")}i=`;
}
