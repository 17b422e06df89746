import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, test } from "node:test";
import { install } from "../service.ts";

let installation: Awaited<ReturnType<typeof install>>;

before(async () => {
  installation = await install();
});
after(async () => await installation?.[Symbol.asyncDispose]());

test("a signal opens no debugger, and the service goes on", async () => {
  const service = await installation.serveProcess();
  service.child.kill("SIGUSR1");
  for (let count = 0; count < 100 && !installation.logs().includes("SIGUSR1 was ignored"); count++)
    await sleep(50);
  assert.match(installation.logs(), /SIGUSR1 was ignored/);
  assert.doesNotMatch(installation.logs(), /Debugger listening/);
  assert.equal((await fetch(`${service.url}/healthz`)).status, 200);
  assert.equal(await service.end(), 0);
});

test("a service that is killed has kept what it compiled, for the next start", async () => {
  const compiled = join(installation.dataFolder, "compiled");
  const service = await installation.serveProcess({ NODE_COMPILE_CACHE: compiled }, ["worker"]);
  assert.equal(await service.end("SIGKILL"), null);
  const kept = readdirSync(compiled, { recursive: true });
  assert.ok(kept.length > 500, `${kept.length} files`);
});

test("the service does not start where its memory would be open to others", async () => {
  for (const option of [
    "--inspect=0",
    "--inspect-port=0",
    "--heapsnapshot-signal=SIGUSR2",
    "--report-on-signal",
  ]) {
    const refused = installation.serveProcess({ NODE_OPTIONS: option });
    await assert.rejects(refused, (error: Error) => {
      assert.match(error.message, /serve ended with 1/, option);
      assert.match(
        error.message,
        /exposes its memory, including keys and credentials.*NODE_OPTIONS/s,
        option,
      );
      return true;
    });
  }
});

test("a database whose log shows values is told at the start and by doctor", async () => {
  const { db, connectionString } = installation.database;
  const name = new URL(connectionString).pathname.slice(1);
  const quiet = await installation.command("doctor");
  assert.doesNotMatch(`${quiet.stdout}${quiet.stderr}`, /the database's log/);
  const settings = {
    log_statement: "all",
    log_parameter_max_length: "-1",
    log_parameter_max_length_on_error: "100",
    log_error_verbosity: "default",
  };
  for (const [setting, value] of Object.entries(settings))
    await db.query(`alter database ${name} set ${setting} = '${value}'`);
  const told = [
    /statements with their values; set log_parameter_max_length = 0/,
    /statements that fail; set log_parameter_max_length_on_error = 0/,
    new RegExp(`\\(DETAIL\\).*as a superuser .*: ALTER DATABASE ${name} SET log_error_verbosity = terse`),
  ];
  const doctor = await installation.command("doctor");
  assert.equal(doctor.code, quiet.code, "advice, no fault");
  const logsBefore = installation.logs().length;
  await (await installation.serveProcess()).end();
  const started = installation.logs().slice(logsBefore);
  for (const risk of told) {
    assert.match(doctor.stdout, risk);
    assert.match(started, risk);
  }
});
