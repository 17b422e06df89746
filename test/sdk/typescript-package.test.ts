/** The TypeScript SDK as its users get it: packed, installed, in Node.js 20 and in ours, with its types. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { createBrotliCompress } from "node:zlib";
import { installPacked, listNodes, packSdk, TSC } from "./pack.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-sdk-"));
after(() => rmSync(folder, { recursive: true }));
const run = promisify(execFile);

const customer = join(folder, "customer");

test("it packs to less than 30 kB, has no dependencies, and installs", async () => {
  const tarball = await packSdk("typescript", folder);
  assert.ok(statSync(tarball).size < 30_000, `${statSync(tarball).size} bytes`);
  await installPacked(tarball, customer);
  const installed = JSON.parse(
    readFileSync(join(customer, "node_modules/@latchkey/sdk/package.json"), "utf8"),
  );
  assert.equal(installed.dependencies, undefined);
});

test("its types say what the interface says", async () => {
  writeFileSync(
    join(customer, "app.ts"),
    `import { Latchkey, type RunStatus } from "@latchkey/sdk";
const latchkey = new Latchkey({ apiKey: "lk_x", baseUrl: "https://connect.example.com" });
export async function go(): Promise<RunStatus["status"]> {
  const { id } = await latchkey.blueprints.trigger("invoices", { credential_id: "cred_x", file: new Blob(["a"]) });
  for await (const { data, errors } of latchkey.runs.records<{ total: number }>(id, "invoices"))
    console.log(data.total.toFixed(2), errors.map(({ message }) => message));
  // @ts-expect-error A session needs its strategy.
  await latchkey.credentialSessions.create({ name: "User 1" });
  // @ts-expect-error A key without a session's name.
  (await latchkey.credentialSessions.read("sess_x")).credentialId;
  const run = await latchkey.runs.waitFor(id);
  return run.status === "completed" ? "completed" : run.status;
}
`,
  );
  const options = [
    "--ignoreConfig",
    "--strict",
    "--noEmit",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--lib",
    "es2023,dom",
  ];
  await run(process.execPath, [TSC, ...options, "--types", "", join(customer, "app.ts")]).catch((error) =>
    assert.fail(String(error.stdout)),
  );
});

test("a million records with a flat heap, in the Node.js of the machine and in ours", async (context) => {
  const count = 1_000_000;
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/download") !== true) {
      const { port } = server.address() as AddressInfo;
      const link = `http://127.0.0.1:${port}/download`;
      return void response
        .setHeader("content-type", "application/json")
        .end(JSON.stringify({ dataDeliveryMethod: "presigned_url", results: { out: link } }));
    }
    const brotli = createBrotliCompress({ params: { [1]: 1 } });
    brotli.pipe(response);
    let n = 0;
    const write = (): void => {
      if (n === 0) brotli.write(`{"totalRecords":${count},"records":[`);
      for (; n < count; n += 1000) {
        const rows = Array.from({ length: 1000 }, (_, at) =>
          JSON.stringify({
            data: { n: n + at, text: 'Northwind "Traders"'.repeat(3) },
            errors: [],
            isValid: true,
          }),
        );
        if (!brotli.write(`${n > 0 ? "," : ""}${rows.join(",")}`)) {
          n += 1000;
          return void brotli.once("drain", write);
        }
      }
      brotli.end("]}");
    };
    write();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  writeFileSync(
    join(customer, "records.js"),
    `import { Latchkey } from "@latchkey/sdk";
const latchkey = new Latchkey({ apiKey: "lk_x", baseUrl: "http://127.0.0.1:${port}" });
let [count, sum, most] = [0, 0, 0];
for await (const { data } of latchkey.runs.records("run_x")) {
  count += 1; sum += data.n;
  if (count % 100_000 === 0) { globalThis.gc(); most = Math.max(most, process.memoryUsage().heapUsed); }
}
console.log(JSON.stringify({ count, sum, most, node: process.version }));
`,
  );
  for (const node of listNodes()) {
    const { stdout } = await run(node, ["--expose-gc", "records.js"], { cwd: customer });
    const told = JSON.parse(stdout);
    context.diagnostic(stdout.trim());
    assert.equal(told.count, count);
    assert.equal(told.sum, (count * (count - 1)) / 2);
    assert.ok(told.most < 40_000_000, stdout);
  }
});
