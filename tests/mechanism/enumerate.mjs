// Runs the shipped client through every draw: channels on stdin -> tables on stdout.
// tables[channel][truth][report] = number of draws in [0, M) that give this report (d = 1).
import { readFileSync } from "node:fs";
import { perturb } from "../../client_js/src/mechanism.js";

const channels = JSON.parse(readFileSync(0, "utf8"));

function table(channel, truth) {
  const total = channel.T + (channel.k - 1) * channel.L;
  const row = new Array(channel.k).fill(0);
  for (let u = 0; u < total; u++) {
    let asked = 0;
    const uniformBelow = (n) => {
      asked += 1;
      if (n !== total) throw new Error(`asked below ${n}, not below ${total}`);
      return u;
    };
    row[perturb(channel, truth, uniformBelow)] += 1;
    if (asked !== 1) throw new Error(`${asked} draws instead of one`);
  }
  return row;
}

console.log(
  JSON.stringify(channels.map((c) => Array.from({ length: c.k }, (_, truth) => table(c, truth)))),
);
