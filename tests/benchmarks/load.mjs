// A load generator: node load.mjs URL CONNECTIONS SECONDS [definition.json on stdin]
// With a definition it posts fresh reports, without one it gets the URL; prints JSON figures.
import http from "node:http";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

const [url, connections, seconds] = process.argv.slice(2);
const { id, codes, length } = JSON.parse(readFileSync(0, "utf8") || "{}");
const agent = new http.Agent({ keepAlive: true, maxSockets: Number(connections) });
const until = performance.now() + 1000 * Number(seconds);
const times = [];
const statuses = {};

function body() {
  const start = JSON.stringify({
    definition: id,
    report_id: randomBytes(16).toString("base64url"),
    stratum: "",
    codes,
    invitation: "",
    pad: "",
  });
  return `${start.slice(0, -2)}${".".repeat(length - start.length)}"}`;
}

function once() {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const options = id
      ? { agent, method: "POST", headers: { "Content-Type": "application/json" } }
      : { agent };
    const request = http.request(url, options, (response) => {
      response.resume();
      response.on("end", () => {
        times.push(performance.now() - begin);
        statuses[response.statusCode] = (statuses[response.statusCode] ?? 0) + 1;
        resolve();
      });
    });
    request.on("error", reject);
    request.end(id ? body() : undefined);
  });
}

async function loop() {
  while (performance.now() < until) await once();
}

await Promise.all(Array.from({ length: Number(connections) }, loop));
times.sort((a, b) => a - b);
const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))];
console.log(
  JSON.stringify({
    per_second: times.length / Number(seconds),
    median_ms: at(0.5),
    p99_ms: at(0.99),
    statuses,
  }),
);
agent.destroy();
