import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fixtureDocuments, LIMITED_BLUEPRINT } from "../../conformance/fixtures.ts";
import { install } from "../service.ts";

const MAIN = join(import.meta.dirname, "../../conformance/main.ts");

let installation: Awaited<ReturnType<typeof install>>;
let targetOrigin: string;

before(async () => {
  targetOrigin = `http://127.0.0.1:${await freePort()}`;
  installation = await install();
  await installation.apply(fixtureDocuments(targetOrigin));
});

after(async () => await installation?.[Symbol.asyncDispose]());

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The suite as an outsider runs it: a process of its own, with an address and keys. */
async function runSuite(
  ...options: string[]
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN, ...options], {
    stdio: ["ignore", "pipe", "pipe"],
    // Inside a test, node:test speaks a protocol of its own to its parent unless this is gone.
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== "NODE_TEST_CONTEXT")),
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}

async function options(baseUrl: string): Promise<string[]> {
  const keys = await Promise.all([
    installation.createKey("conformance-one"),
    installation.createKey("conformance-one", { blueprints: [LIMITED_BLUEPRINT] }),
    installation.createKey("conformance-two"),
  ]);
  return [
    ...["--base-url", baseUrl, "--target-origin", targetOrigin, "--api-key", keys[0] ?? ""],
    ...["--limited-api-key", keys[1] ?? "", "--other-api-key", keys[2] ?? ""],
  ];
}

test("a real installation passes the whole black-box suite", async () => {
  const service = await installation.serve();
  const { code, output } = await runSuite(...(await options(`${service.url}/api/v1`)));
  await service.end();
  assert.equal(code, 0, output);
  assert.match(output, /\d+ cases: \d+ passed, 0 failed/);
});

test("the suite fails against what is no such service, and refuses to start without its options", async () => {
  const { code, output } = await runSuite(
    ...(await options("http://127.0.0.1:9/api/v1")),
    "--only",
    "versioning",
  );
  assert.equal(code, 1, output);
  assert.match(output, /1 cases: 0 passed, 1 failed/);
  const without = await runSuite("--api-key", "x");
  assert.equal(without.code, 2);
  assert.match(without.output, /Missing: --base-url, --other-api-key, --limited-api-key/);
});
