// Forms are counted by the network of their sender: an IPv6 client has 2^64 addresses of its own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { limits } from "#domain/limits.ts";
import { newId } from "#lib/new-id.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import { send } from "./form-visitor.ts";

let installation: Installation & AsyncDisposable;
let service: RunningService;

before(async () => {
  installation = await install({ LATCHKEY_TRUSTED_PROXIES: "127.0.0.1/32" });
  service = await installation.serve();
});
after(async () => await installation[Symbol.asyncDispose]());

const FORM = "application/x-www-form-urlencoded";

/** A form of no link at all, so that it is counted by its address alone. */
async function sendFrom(address: string, path: string): Promise<number> {
  const headers = { "content-type": FORM, "x-forwarded-for": address };
  return (await send(`${service.url}${path}`, { method: "POST", headers, body: "a=b" })).status;
}

for (const [what, pathOf, network] of [
  ["hosted", () => "/connect/nothing", "2001:db8:1:1"],
  ["embedded", () => `/embed/v1/${newId("ecs_")}/view`, "2001:db8:1:2"],
] as const)
  test(`${what} forms of one IPv6 network are counted together, and those of another are not`, async () => {
    const { burst } = limits.forms.address;
    let sent = 0;
    let refused = 0;
    // Each from an address of its own.
    const another = (): string => `${network}:${(sent++).toString(16)}::1`;
    while (refused === 0 && sent < burst * 3) {
      const statuses = await Promise.all(
        Array.from({ length: 50 }, async () => await sendFrom(another(), pathOf())),
      );
      refused = statuses.filter((status) => status === 429).length;
    }
    assert.ok(refused > 0, `${sent} forms of one network were all taken`);
    assert.ok(sent > burst, `${sent} were taken`);
    assert.notEqual(await sendFrom(`${network.slice(0, -1)}f::1`, pathOf()), 429);
  });
