/** The server of the Model Context Protocol as its users get it: packed, installed, and used by the protocol's own client. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { createOperatorToken } from "#actions/operators/manage-tokens.ts";
import { openOperatorStage, type OperatorStage } from "../operator/stage.ts";
import { installPacked, listNodes, packSdk } from "./pack.ts";

/** The reference implementation, which is installed for this test alone: 29 MB and a hundred packages. */
const CLIENT = "@modelcontextprotocol/sdk@1.32.2";
const folder = mkdtempSync(join(tmpdir(), "latchkey-mcp-"));
const customer = join(folder, "customer");
const run = promisify(execFile);
let stage: OperatorStage;

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply("account: acme");
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("it packs to less than 20 kB, and installs without dependencies", async () => {
  const tarball = await packSdk("mcp", folder);
  assert.ok(statSync(tarball).size < 20_000, `${statSync(tarball).size} bytes`);
  await installPacked(tarball, customer);
  const { stdout } = await run("npm", ["ls", "--all", "--parseable"], { cwd: customer });
  assert.equal(stdout.trim().split("\n").length, 2, stdout);
});

const SCRIPT = `
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [node, url] = process.argv.slice(2);
const client = new Client({ name: "test", version: "1" });
await client.connect(new StdioClientTransport({
  command: node,
  args: ["node_modules/.bin/latchkey-mcp", "--url", url],
  env: { LATCHKEY_TOKEN: process.env.TOKEN, PATH: process.env.PATH },
}));
const { tools } = await client.listTools();
const overview = await client.callTool({ name: "read_overview", arguments: {} });
const wrong = await client.callTool({ name: "read_run", arguments: { runId: "run_nothing" } });
const unknown = await client.callTool({ name: "nothing" }).catch(({ code }) => code);
const { name, version } = client.getServerVersion();
console.log(JSON.stringify({
  tools: tools.map(({ name, annotations }) => [name, annotations.readOnlyHint]),
  overview: Object.keys(JSON.parse(overview.content[0].text)),
  wrong: [wrong.isError, wrong.content[0].text],
  unknown, name, version,
}));
await client.close();
`;

test("the protocol's own client lists and calls its tools, in every Node.js of this machine", async () => {
  await run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", CLIENT], { cwd: customer });
  writeFileSync(join(customer, "client.js"), SCRIPT);
  const context = { db: stage.db, signing: stage.signing, actor: { kind: "cli" } } as const;
  const request = { name: "assistant", role: "viewer", lifetimeMs: 3_600_000, accounts: null } as const;
  const { token } = await createOperatorToken(context, request);
  for (const node of listNodes()) {
    const { stdout } = await run(process.execPath, ["client.js", node, stage.service.url], {
      cwd: customer,
      env: { PATH: process.env["PATH"], TOKEN: token },
    });
    const told = JSON.parse(stdout);
    assert.equal(told.tools.length, 13, node);
    assert.ok(told.tools.every(([, isRead]: [string, boolean]) => isRead));
    assert.deepEqual([told.name, told.version, told.unknown], ["latchkey", "0.1.0", -32_602]);
    assert.ok(told.overview.includes("needs_people"));
    assert.deepEqual(told.wrong[0], true);
    assert.match(told.wrong[1], /^404: /);
  }
});

test("without a token, without a URL, or unencrypted over a network it does not start, and says what to do", async () => {
  const main = join(customer, "node_modules/.bin/latchkey-mcp");
  const refused = async (words: readonly string[], env: Record<string, string>): Promise<string> =>
    await run(process.execPath, [main, ...words], { env }).then(
      () => assert.fail("it started"),
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => {
        assert.deepEqual([code, stdout], [2, ""]);
        return stderr;
      },
    );
  assert.match(await refused([], { LATCHKEY_URL: "https://a.example" }), /set LATCHKEY_TOKEN/);
  assert.match(await refused([], { LATCHKEY_TOKEN: "lko_x" }), /Name the service/);
  assert.match(await refused(["--url", "http://a.example"], { LATCHKEY_TOKEN: "lko_x" }), /is not encrypted/);
  assert.match(await refused(["--nothing"], {}), /--allow-writes/);
});
