// Acts in Firefox for tests: one JSON command per line on stdin, one JSON answer per line on stdout.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../client_js/package.json", import.meta.url));
const { default: puppeteer } = await import(require.resolve("puppeteer-core"));
const TIMEOUT = { timeout: 60_000 };

const [executablePath] = process.argv.slice(2);
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true });
const page = await browser.newPage();
const requests = [];
page.on("request", (request) => requests.push([request.method(), request.url()]));

const byText = (selector, words) =>
  page.locator(`${selector}::-p-text(${words})`).setTimeout(TIMEOUT.timeout);

const commands = {
  open: (url) => page.goto(url, { waitUntil: "load" }),
  reload: () => page.reload(),
  press: (words) => byText("button", words).click(),
  choose: (label) => byText("label", label).click(),
  see: (words) => page.waitForFunction(
    (text) => document.body.innerText.includes(text), TIMEOUT, words),
  requests: () => requests.splice(0),
  storage: () => page.evaluate(() => ({ ...localStorage })),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...values] = JSON.parse(line);
  try {
    const result = await commands[name](...values);
    const isPlain = name === "requests" || name === "storage";
    console.log(JSON.stringify({ result: isPlain ? result : null }));
  } catch (error) {
    const text = await page.evaluate(() => document.body.innerText).catch(() => "");
    console.log(JSON.stringify({ error: `${name} ${values}: ${error.message}; page: ${text}` }));
  }
}
await browser.close();
