// A service that starts before its database, as when both are started at once, waits for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../eventually.ts";
import { openFrozenProxy } from "../flow/frozen-proxy.ts";
import { install } from "../service.ts";

test("`serve` waits for a database that is away, and ends when it stays away for longer than it may", async () => {
  await using installation = await install();
  const proxy = await openFrozenProxy(installation.database.connectionString);
  try {
    proxy.swallow();
    const at = { DATABASE_URL: proxy.connectionString };
    await assert.rejects(
      installation.serve({ ...at, LATCHKEY_DATABASE_WAIT_SECONDS: "0" }),
      /The database of DATABASE_URL can't be opened/,
    );
    const starting = installation.serve(at);
    const waits = /the database of DATABASE_URL is unavailable; waiting up to 60 s for it/;
    await eventually("it waits", async () => waits.test(installation.logs()) || undefined);
    proxy.heal();
    const service = await starting;
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
    await service.end();
  } finally {
    await proxy.close();
  }
});

test("`serve` whose connections stall in the middle of its start begins again, and says why it ends", async () => {
  await using installation = await install();
  const proxy = await openFrozenProxy(installation.database.connectionString);
  try {
    const at = { DATABASE_URL: proxy.connectionString };
    proxy.letThrough(1);
    await assert.rejects(
      installation.serve({ ...at, LATCHKEY_DATABASE_WAIT_SECONDS: "0" }),
      /The database of DATABASE_URL can't be opened \(.*\)\. Check that the server is running/,
    );
    proxy.letThrough(1);
    const starting = installation.serve(at);
    const again = /the database of DATABASE_URL was lost during the start; starting again/;
    await eventually("it begins again", async () => again.test(installation.logs()) || undefined);
    proxy.heal();
    const service = await starting;
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
    await service.end();
  } finally {
    await proxy.close();
  }
});
