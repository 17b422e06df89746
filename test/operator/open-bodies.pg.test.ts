// What is read of people who have not signed in: little by the operator API, and nothing by forms before they are counted.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { limits } from "#domain/limits.ts";
import { exchange } from "../http/raw-socket.ts";
import { setUpHosted, type Hosted } from "../hosted/hosted-setup.ts";
import { newId } from "#lib/new-id.ts";

const OPEN = ["/session", "/session/oidc/begin", "/session/oidc"] as const;

let hosted: Hosted;
before(async () => {
  hosted = await setUpHosted();
});
after(async () => await hosted?.[Symbol.asyncDispose]());

/** The headers of a request whose body never comes. */
function headersAlone(path: string, type: string, ...lines: readonly string[]): string {
  const { host, origin } = new URL(hosted.service.url);
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: ${host}`,
    `Origin: ${origin}`,
    `Content-Type: ${type}`,
    ...lines,
  ];
  return `${head.join("\r\n")}\r\n\r\n`;
}

const statusOf = async (request: string): Promise<number | undefined> =>
  (await exchange(hosted.service.url, request, { timeoutMs: 20_000 })).answers[0]?.status;

describe("open routes", () => {
  for (const path of OPEN) {
    test(`POST ${path} takes 4 KiB, whether or not the body says how long it is`, async () => {
      const url = `/operator/v1${path}`;
      const lengths = `Content-Length: ${limits.openBodyBytesMax + 1}`;
      assert.equal(await statusOf(headersAlone(url, "application/json", "X-CSRF-Token: x", lengths)), 413);
      const chunk = `${limits.openBodyBytesMax.toString(16)}\r\n${" ".repeat(limits.openBodyBytesMax)}\r\n`;
      const chunked = headersAlone(url, "application/json", "X-CSRF-Token: x", "Transfer-Encoding: chunked");
      assert.equal(await statusOf(`${chunked}${chunk}${chunk}`), 413);
    });
  }
});

describe("forms of end users are counted before their bodies come", () => {
  const FORM = "application/x-www-form-urlencoded";

  test("those of a link, whose others go on", async () => {
    const [flooded, other] = [await hosted.session(), await hosted.session()];
    const pathOf = (url: string): string => new URL(url).pathname;
    const request = headersAlone(pathOf(flooded.hosted_url), "text/plain", "Content-Length: 50");
    let status: number | undefined;
    let sent = 0;
    for (; status !== 429 && sent < limits.forms.link.burst * 3; sent++) status = await statusOf(request);
    assert.equal(status, 429);
    assert.ok(sent > limits.forms.link.burst, `${sent} were let through`);
    const silent = headersAlone(pathOf(flooded.hosted_url), FORM, "Content-Length: 50");
    assert.equal(await statusOf(silent), 429);
    const good = await fetch(other.hosted_url, {
      method: "POST",
      headers: { "content-type": "text/plain" },
      body: "x",
    });
    assert.equal(good.status, 415);
  });

  test("and those of an address, whatever links they name", async () => {
    const statuses = new Set<number>();
    // Flows that don't exist: of those, links are not counted.
    const request = (): string => headersAlone(`/embed/v1/${newId("ecs_")}/view`, FORM, "Content-Length: 50");
    const { burst } = limits.forms.address;
    for (let at = 0; at < burst * 2 && !statuses.has(429); at += 100) {
      const many = await Promise.all(Array.from({ length: 100 }, async () => await statusOf(request())));
      for (const each of many) statuses.add(each ?? 0);
    }
    assert.deepEqual(
      [...statuses].sort((a, b) => a - b),
      [404, 429],
    );
  });
});
