import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { openPortal, signedInVisitor } from "./portal-visitor.ts";

const MAIN = fileURLToPath(new URL("../../examples/portal/main.ts", import.meta.url));

function runMain(t: TestContext, env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  return child;
}

test("the portal runs alone, says its address first, and SIGTERM ends it with 0 even with a connection open", async (t) => {
  const child = runMain(t, { PORTAL_PORT: "0" });
  assert.ok(child.stdout);
  const exited = once(child, "exit");
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const match = /^Northwind Supplier Portal at (http:\/\/127\.0\.0\.1:\d+)$/.exec(line);
  assert.ok(match?.[1], line);
  const visitor = await signedInVisitor(match[1]);
  assert.equal((await visitor.get("/api/me")).status, 200);
  child.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
});

test("a taken port and a bad setting end the start with a message that says what to do", async (t) => {
  const portal = await openPortal(t);
  for (const [env, code, message] of [
    [{ PORTAL_PORT: new URL(portal.url).port }, 1, /is taken; set PORTAL_PORT/],
    [{ PORTAL_PORT: "http" }, 2, /PORTAL_PORT must be a whole number from 0 to 65535/],
  ] as const) {
    const child = runMain(t, env);
    let errors = "";
    child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    const [status] = await once(child, "close");
    assert.equal(status, code);
    assert.match(errors, message);
  }
});
