// Runs whole visits of the client, from the link to the acknowledgment, each in a realm of its own.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import vm from "node:vm";
import { createRealm, loaderFor } from "./realm.mjs";

const device = new vm.Script(readFileSync(new URL("./device.js", import.meta.url), "utf8"), {
  filename: "device.js",
});

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Nothing in a realm waits for a network or a clock, so one turn later all promises are settled. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Return a realm without a browser, and a function that names what else its modules have touched. */
export function createBareRealm() {
  const context = createRealm();
  const visit = device.runInContext(context)(JSON.stringify({ isBare: true }), digest);
  return { context, violations: () => JSON.parse(visit.record()).violations };
}

/** Return a record of one visit: its events in order, and what is left at its end. */
export async function makeVisit(sources, visitor) {
  const context = createRealm();
  const visit = device.runInContext(context)(JSON.stringify(visitor), digest);
  let failure = "";
  try {
    await loaderFor(context, sources)("main.js");
    await turn();
    while (visit.next() !== "") await turn();
  } catch (error) {
    failure = String(error?.message ?? error);
  }
  const record = JSON.parse(visit.record());
  if (failure === "" && visitor.looksBack) {
    try {
      record.remembered = visit.remembered();
    } catch (error) {
      failure = String(error?.message ?? error);
    }
  }
  return { ...record, failure, isStuck: visit.isStuck() };
}
