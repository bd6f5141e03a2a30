// Runs whole visits of the client, from the link to the acknowledgment, each in a separate realm.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Session } from "node:inspector";
import vm from "node:vm";
import { createRealm, loaderFor } from "./realm.mjs";

const device = new vm.Script(readFileSync(new URL("./device.js", import.meta.url), "utf8"), {
  filename: "device.js",
});

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** In a realm, nothing waits for a network or a clock, so all promises settle within one turn. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Return a realm without a browser, and a function that lists forbidden uses by its modules. */
export function createBareRealm() {
  const context = createRealm();
  const visit = device.runInContext(context)(JSON.stringify({ isBare: true }), digest);
  return { context, violations: () => JSON.parse(visit.record()).violations };
}

/** Return a function that returns how often the client's blocks ran since its last call. */
function startCounting(sources) {
  const session = new Session();
  session.connect();
  const post = (method, parameters) => {
    let answer;
    session.post(method, parameters, (error, result) => {
      if (error) throw error;
      answer = result;
    });
    return answer;
  };
  post("Profiler.enable");
  post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  return () =>
    post("Profiler.takePreciseCoverage")
      .result.filter(({ url }) => sources.has(url))
      .flatMap((script) => script.functions.flatMap(({ ranges }) => ranges))
      .reduce((sum, { count }) => sum + count, 0);
}

/** Return the record of a visit: its events in order, and the state at its end. */
export async function makeVisit(sources, visitor) {
  const context = createRealm();
  const visit = device.runInContext(context)(JSON.stringify(visitor), digest);
  const count = visitor.counts ? startCounting(sources) : () => 0;
  const blocks = [];
  let failure = "";
  try {
    await loaderFor(context, sources)("main.js");
    await turn();
    for (let action = "start"; action !== ""; ) {
      const view = visit.view();
      if (view === "review") count();
      action = visit.next();
      await turn();
      if (view === "review" || view === "sending") blocks.push(count());
    }
  } catch (error) {
    failure = String(error?.message || error?.constructor.name || error);
  }
  const record = JSON.parse(visit.record());
  if (failure === "" && visitor.looksBack) {
    try {
      record.remembered = visit.remembered();
    } catch (error) {
      failure = String(error?.message || error?.constructor.name || error);
    }
  }
  return { ...record, blocks, failure, isStuck: visit.isStuck() };
}
