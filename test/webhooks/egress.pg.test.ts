// Deliveries pass the egress gate: nothing inside the operator's network is reached.
import assert from "node:assert/strict";
import { test } from "node:test";
import { deliverWebhooks } from "#actions/webhooks/deliver-webhooks.ts";
import { openGate } from "#outbound/gate.ts";
import { until } from "../eventually.ts";
import { runCommand } from "../cli/program.ts";
import { install } from "../service.ts";
import { deliveryJob, openDeliveryServices, startReceiver } from "./stage.ts";

test("an endpoint at a private address, by number or by name, is refused without a connection", async (context) => {
  const trap = await startReceiver();
  const installation = await install({ LATCHKEY_EGRESS_ALLOW: "" });
  context.after(async () => {
    await installation[Symbol.asyncDispose]();
    await trap.close();
  });
  await installation.apply("account: acme\nallowed_origins: [http://localhost:3000]");
  await installation.serve();
  const { port } = new URL(trap.url);
  const hosts = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"];
  for (const host of hosts) {
    const { stdout } = await runCommand(installation, 0, [
      "webhooks",
      "create",
      "--account",
      "acme",
      `https://${host}:${port}/`,
      "--json",
    ]);
    const { id } = JSON.parse(stdout);
    await runCommand(installation, 0, ["webhooks", "ping", id]);
  }
  const { db } = installation.database;
  const failures = async (): Promise<readonly { failure: string }[]> =>
    await db.query<{ failure: string }>(`select failure from webhook_attempt where number = 1`);
  await until("all were tried", async () => (await failures()).length === hosts.length);
  for (const { failure } of await failures()) assert.match(failure, /address/);
  assert.equal(trap.connections, 0);
});

test("a name that leads inside the second time is refused then, without a connection", async (context) => {
  const trap = await startReceiver();
  const installation = await install();
  // 127.0.0.2, where nobody listens, stands for a public address.
  const addresses = ["127.0.0.2", "127.0.0.1"];
  const gate = openGate({
    allow: ["127.0.0.2/32"],
    resolve: async () => [addresses.shift() ?? assert.fail("one look-up an attempt")],
  });
  context.after(async () => {
    await gate.close();
    await installation[Symbol.asyncDispose]();
    await trap.close();
  });
  await installation.apply("account: acme");
  const url = `https://rebinds.example:${new URL(trap.url).port}/`;
  const words = ["webhooks", "create", url, "--account", "acme", "--json"];
  const { id } = JSON.parse((await runCommand(installation, 0, words)).stdout);
  await runCommand(installation, 0, ["webhooks", "ping", id]);
  const { db } = installation.database;
  const services = await openDeliveryServices(installation, gate);
  for (let attempt = 0; attempt < 2; attempt++) {
    await db.query("update webhook_delivery set due_at = app_now()");
    await deliverWebhooks(services, deliveryJob(id));
  }
  const failures = await db.query<{ failure: string }>("select failure from webhook_attempt order by number");
  assert.deepEqual(
    failures.map(({ failure }) => /ECONNREFUSED|private|address/.exec(failure)?.[0]),
    ["ECONNREFUSED", "address"],
  );
  assert.equal(trap.connections, 0);
});
