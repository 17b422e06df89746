// The process that carries suspects, as its worker sees it. What becomes of the runs: test/flow/poison.pg.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openLog } from "#lib/log.ts";
import { Quarantine } from "#worker/quarantine.ts";

/** More looks than a process may stay silent for, from its start on. */
const LOOKS = 61;

test("one process at a time is started, and one that says nothing is ended and told of", async () => {
  const logged: { readonly msg: string; readonly signal?: string }[] = [];
  const log = openLog(
    { level: "debug", format: "json" },
    { write: (line: string) => void logged.push(JSON.parse(line)) },
  );
  const quarantine = new Quarantine({ order: { environment: {}, source: { connectionString: "" } }, log });
  const death = Promise.withResolvers<void>();
  for (let look = 0; look < LOOKS; look++) quarantine.look(true, death.resolve);
  const said = (text: string): number => logged.filter(({ msg }) => msg.includes(text)).length;
  assert.equal(said("a quarantine process was started"), 1);
  assert.equal(said("is not responding"), 1);
  await death.promise;
  assert.equal(logged.find(({ msg }) => msg.includes("died"))?.signal, "SIGKILL");
  quarantine.look(true, death.resolve);
  assert.equal(said("a quarantine process was started"), 1, "not at once again");
  await quarantine.stop();
  quarantine.look(true, death.resolve);
  assert.equal(said("a quarantine process was started"), 1);
});
