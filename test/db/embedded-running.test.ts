import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { takesPassword } from "#db/embedded/first-connection.ts";
import { awaitRunning } from "#db/embedded/server.ts";

const folder = mkdtempSync(join(tmpdir(), "latchkey-running-"));
after(() => rmSync(folder, { recursive: true, force: true }));

test("a server that says it is ready and refuses for a moment is one that stops, and not one that has lost its socket", async (t) => {
  // A process in the data folder, as a server is, that nobody can connect to.
  const server = spawn(process.execPath, ["--eval", "setInterval(() => {}, 1_000)"], { cwd: folder });
  t.after(() => server.kill());
  await once(server, "spawn");
  const lines = [server.pid, folder, 0, 5432, join(folder, "no-socket"), "", "", "ready"];
  writeFileSync(join(folder, "postmaster.pid"), lines.join("\n"));
  const ended = once(server, "exit");
  const found = awaitRunning({ path: folder, user: "latchkey", password: "none" });
  await sleep(500);
  server.kill();
  await ended;
  assert.equal(await found, "ended");
});

test("a server whose connections are all in use says nothing against a role's password; a refusal of the password does", async (t) => {
  let code = "";
  // As PostgreSQL refuses a connection: an ErrorResponse in answer to the client's first message.
  const refusing = createServer((socket) => {
    socket.once("data", () => {
      const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mrefused\0\0`);
      const head = Buffer.from("E\0\0\0\0");
      head.writeInt32BE(fields.length + 4, 1);
      socket.end(Buffer.concat([head, fields]));
    });
  });
  t.after(() => refusing.close());
  refusing.listen(join(folder, ".s.PGSQL.5432"));
  await once(refusing, "listening");
  const address = { host: folder, port: 5432, user: "latchkey_service", password: "secret" };
  const outcome = async (refusal: string): Promise<unknown> => {
    code = refusal;
    return await takesPassword(address, "latchkey").catch((error: { readonly code?: string }) => error.code);
  };
  assert.equal(await outcome("53300"), true);
  for (const refusal of ["28P01", "42501", "28000"]) assert.equal(await outcome(refusal), false, refusal);
  assert.equal(await outcome("57P03"), "57P03", "it starts: nobody knows");
});
