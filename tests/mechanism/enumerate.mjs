// Runs the shipped client through every sequence of draws.
// stdin: [{channel, truths}], stdout: for each channel and truth {report: number of sequences}.
import { readFileSync } from "node:fs";
import { perturb } from "../../client_js/src/mechanism.js";

function table(channel, truth) {
  const reports = {};
  const draws = [];
  let shape = null;
  for (;;) {
    const asked = [];
    const uniformBelow = (n) => {
      asked.push(n);
      draws[asked.length - 1] ??= 0;
      return draws[asked.length - 1];
    };
    const report = perturb(channel, truth, uniformBelow);
    reports[report] = (reports[report] ?? 0) + 1;
    shape ??= String(asked);
    if (shape !== String(asked)) throw new Error(`draws below ${asked}, then below ${shape}`);
    let at = asked.length - 1;
    while (at >= 0 && ++draws[at] === asked[at]) draws[at--] = 0;
    if (at < 0) return { reports, draws: shape };
  }
}

const asked = JSON.parse(readFileSync(0, "utf8"));
const tables = asked.map(({ channel, truths }) => truths.map((truth) => table(channel, truth)));
// What is drawn depends on the channel alone, never on the truth.
for (const [i, rows] of tables.entries()) {
  if (new Set(rows.map(({ draws }) => draws)).size !== 1) {
    throw new Error(`the draws of channel ${i} depend on the truth`);
  }
}
console.log(JSON.stringify(tables.map((rows) => rows.map(({ reports }) => reports))));
