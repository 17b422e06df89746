import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import { openDoor, type Door } from "#engine/redaction/door.ts";
import { openHandles, type HandleOwner } from "#engine/redaction/handles.ts";
import { openRunSecrets } from "#engine/redaction/run-secrets.ts";
import { limits } from "#domain/limits.ts";

const VALUE = `csrf+of/the "login"==&<end>`;
const ORIGIN = "https://portal.example";
const RUN: HandleOwner = { runId: "run_1", credentialId: "cred_1" };

const macWith =
  (key: string) =>
  (parts: readonly string[]): string =>
    createHmac("sha256", key).update(JSON.stringify(parts)).digest("hex");

function doorOf(owner: HandleOwner = RUN, values: readonly string[] = [VALUE, "471100"], key = "key"): Door {
  const handles = openHandles(macWith(key), owner);
  handles.add(values, ["correct-horse"]);
  return openDoor(openRunSecrets([...values, "correct-horse"], new Set(["correct-horse"])), handles);
}

const responseOf = (body: string, more: Partial<OutboundResponse> = {}): OutboundResponse => ({
  status: 200,
  url: `${ORIGIN}/page`,
  headers: new Map(),
  body: Buffer.from(body),
  isRedirected: false,
  kept: null,
  text: () => body,
  ...more,
});
const seen = async (door: Door, body: string, url = `${ORIGIN}/page`): Promise<string> =>
  (await door.enter(responseOf(body, { url }))).text();
const sent = (door: Door, request: Partial<OutboundRequest>, origin = ORIGIN): OutboundRequest =>
  door.leave({ method: "POST", url: "/", ...request }, new URL(request.url ?? "/", origin));
const header = (door: Door, value: string, origin = ORIGIN): string =>
  sent(door, { headers: [["x-a", value]] }, origin).headers?.[0]?.[1] ?? "";

/** A value that every header may hold. */
const PLAIN = "0123456789abcdef-session";

const HANDLE = /^lkhandle[0-9a-f]{40}$/;

test("a value becomes a handle however the target writes it down; what the end user gave does not", async () => {
  const door = doorOf();
  const { value } = JSON.parse(await seen(door, JSON.stringify({ value: VALUE })));
  assert.match(value, HANDLE);
  const escaped = JSON.stringify({ value: VALUE }).replaceAll(
    /[<>&]/g,
    (each) => `\\u00${each.charCodeAt(0).toString(16)}`,
  );
  assert.equal(JSON.parse(await seen(door, escaped)).value, value);
  const html = VALUE.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&#34;");
  assert.equal(await seen(door, `<input value="${html}">`), `<input value="${value}">`);
  const base64 = Buffer.from(`user:${VALUE}`).toString("base64");
  assert.match(await seen(door, `x ${base64} y`), /^x .{0,10}\[REDACTED\].{0,4} y$/);
  assert.equal(
    await seen(door, '{"correct-horse":"correct-horse","n":471100,"m":9471100}'),
    `{"correct-horse":"[REDACTED]","n":"${JSON.parse(await seen(door, '{"n":471100}')).n}","m":"9${JSON.parse(await seen(door, '{"n":"471100"}')).n}"}`,
  );
});

test("put whole into a request, it is the value in the spelling of the place", async () => {
  const door = doorOf();
  const value = JSON.parse(await seen(door, JSON.stringify({ value: VALUE }))).value as string;
  const link = await seen(door, `/next/${encodeURIComponent(VALUE)}?sid=${encodeURIComponent(VALUE)}&a=1`);
  assert.match(link, /^\/next\/lkhandle[0-9a-f]{40}\?sid=lkhandle[0-9a-f]{40}&a=1$/);
  const written = `${ORIGIN}/next/${encodeURIComponent(VALUE)}?sid=${encodeURIComponent(VALUE)}&a=1`;
  assert.equal(sent(door, { url: link }).url, written);
  assert.equal(sent(door, { url: `/next/${value}?sid=${value}&a=1` }).url, written);
  assert.deepEqual(sent(door, { query: [["a", value]] }).query, [["a", VALUE]]);
  const form = sent(door, {
    headers: [["Content-Type", "application/x-www-form-urlencoded"]],
    body: new URLSearchParams({ a: value, b: `x${value}`, [value]: "c" }).toString(),
  });
  assert.deepEqual(
    [...new URLSearchParams(String(form.body))],
    [
      ["a", VALUE],
      ["b", "x[REDACTED]"],
      ["[REDACTED]", "c"],
    ],
  );
  const number = JSON.parse(await seen(door, '{"n":471100}')).n as string;
  const json = sent(door, {
    headers: [["content-type", "application/vnd.portal+json"]],
    body: JSON.stringify({ a: [value], n: number, [value]: `"${value}"`, b: JSON.stringify({ c: value }) }),
  });
  assert.deepEqual(JSON.parse(String(json.body)), {
    a: [VALUE],
    n: 471_100,
    "[REDACTED]": '"[REDACTED]"',
    b: '{"c":"[REDACTED]"}',
  });
  const xml = sent(door, {
    headers: [["content-type", "text/xml"]],
    body: `<a b="${value}"><c>${value}</c><d>x${value}</d></a>`,
  });
  const markup = "csrf+of/the &quot;login&quot;==&amp;&lt;end&gt;";
  assert.equal(xml.body, `<a b="${markup}"><c>${markup}</c><d>x[REDACTED]</d></a>`);
  assert.equal(sent(door, { body: value }).body, VALUE);
});

test("of another run, credential, origin or installation it is nothing", async () => {
  const values = [PLAIN];
  const handle = await seen(doorOf(RUN, values), PLAIN);
  assert.match(handle, HANDLE);
  assert.equal(header(doorOf(RUN, values), handle), PLAIN, "another process of the same run");
  assert.equal(header(doorOf({ ...RUN, runId: "run_2" }, values), handle), "[REDACTED]");
  assert.equal(header(doorOf({ ...RUN, credentialId: "cred_2" }, values), handle), "[REDACTED]");
  assert.equal(header(doorOf(RUN, values, "other"), handle), "[REDACTED]");
  assert.equal(header(doorOf(RUN, values), handle, "https://portal.example:444"), "[REDACTED]");
  assert.equal(header(doorOf(RUN, values), handle, "http://portal.example"), "[REDACTED]");
  const elsewhere = await seen(doorOf(RUN, values), PLAIN, "https://other.example/");
  assert.equal(header(doorOf(RUN, values), elsewhere), "[REDACTED]");
  assert.equal(header(openDoor(openRunSecrets(values), null), handle), "[REDACTED]");
});

test("of a session that is no more the request is refused, and nothing of it is sent", async () => {
  const handle = await seen(doorOf(RUN, [PLAIN]), PLAIN);
  const other = doorOf(RUN, ["another-session-0123456789"]);
  assert.throws(() => header(other, handle), {
    failure: "refused",
    message: /session that no longer exists/,
  });
  assert.equal(header(other, `x${handle}`), "x[REDACTED]", "not whole");
});

test("cookies that come later are handles as well; of very many the newest", async () => {
  const door = doorOf(RUN, []);
  const cookie = (index: number): string => `cookie-of-the-session-${index}-end`;
  door.learn([cookie(0)]);
  const first = await seen(door, cookie(0));
  assert.equal(header(door, first), cookie(0));
  for (let index = 1; index <= 2 * limits.lateCookiesMax; index++) door.learn([cookie(index)]);
  const last = await seen(door, cookie(2 * limits.lateCookiesMax));
  assert.equal(header(door, last), cookie(2 * limits.lateCookiesMax));
  assert.throws(() => header(door, first), /no longer exists/);
});

test("headers and the address of a response are cleaned: their bytes, in whatever alphabet", async () => {
  const values = ["schlüssel-wort", PLAIN];
  const door = doorOf(RUN, values);
  const { headers, url } = await door.enter(
    responseOf("", {
      url: `${ORIGIN}/a/${PLAIN}?b=${encodeURIComponent("schlüssel-wort")}`,
      headers: new Map([
        ["link", `</a?sid=${PLAIN}>; rel="next"`],
        ["x-said", Buffer.from("schlüssel-wort", "utf8").toString("latin1")],
        ["x-latin", "schlüssel-wort"],
        [PLAIN, "1"],
      ]),
    }),
  );
  assert.match(url, /^https:\/\/portal\.example\/a\/lkhandle[0-9a-f]{40}\?b=lkhandle[0-9a-f]{40}$/);
  assert.match(headers.get("link") ?? "", /^<\/a\?sid=lkhandle[0-9a-f]{40}>; rel="next"$/);
  assert.doesNotMatch(JSON.stringify([...headers]), /ssel|0123456789abcdef-/);
});

test("a form that is streamed is filled in, and a file in it keeps its size", async () => {
  const door = doorOf(RUN, [PLAIN]);
  const handle = await seen(door, PLAIN);
  const head = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n';
  const file = `<a href="${handle}">`.repeat(50);
  const pieces = [
    ...Buffer.from(file)
      .toString()
      .matchAll(/[^]{1,7}/g),
  ].map(([piece]) => Buffer.from(piece));
  const sections = [
    Buffer.from(`${head}${handle}\r\n`),
    Buffer.from(`${head}line\r\n\r\n${handle}\r\n`),
    {
      sizeBytes: file.length,
      open: async function* () {
        yield* pieces;
      },
    },
  ];
  const { body } = sent(door, { body: { sections, sizeBytes: 0, open: async function* () {} } });
  assert.ok(typeof body === "object" && "open" in body);
  const bytes = Buffer.concat(await Array.fromAsync(body.open()));
  assert.equal(bytes.length, body.sizeBytes);
  const shown = `<a href="[REDACTED]${" ".repeat(38)}">`.repeat(50);
  assert.equal(bytes.toString(), `${head}${PLAIN}\r\n${head}line\r\n\r\n[REDACTED]\r\n${shown}`);
});

test("a value that no header may hold is refused, and not shown", async () => {
  const door = doorOf(RUN, ["line\nof-the-login"]);
  const handle = JSON.parse(await seen(door, JSON.stringify(["line\nof-the-login"])))[0] as string;
  assert.throws(() => header(door, handle), {
    message: /^the header x-a would have a value with a character/,
  });
});

test("JSON that is kept in a file while it comes stays JSON, wherever it is cut", async () => {
  const values = ["471100", "items", 'quoted"value\\end', PLAIN];
  const handles = openHandles(macWith("key"), RUN);
  handles.add(values, []);
  const secrets = openRunSecrets(
    values.map((value) => (value === "471100" ? { value, alone: true } : value)),
    new Set(["items"]),
  );
  const door = openDoor(secrets, handles);
  const record = (n: number) => ({
    items: `${PLAIN} of ${n}`,
    tenant: n % 3 === 0 ? 471_100 : 471_101,
    'quoted"value\\end': ['quoted"value\\end', "id:471100,x", "\\", '"'.repeat(n % 5)],
    filler: 'lorem \\ " ipsum'.repeat(n % 40),
  });
  const records = Array.from({ length: 1_000 }, (_each, n) => record(n));
  const whole = JSON.parse(await seen(door, JSON.stringify({ items: records }))) as { items: object[] };
  assert.match(JSON.stringify(whole.items[3]), /^\{"items":"lkhandle\w{40} of 3","tenant":"lkhandle/);
  for (const size of [1_003, 65_536, 10_000_000]) {
    const bytes = Buffer.from(JSON.stringify({ items: records }));
    const chunks = (async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    })();
    const kept = Buffer.concat(await Array.fromAsync(door.enterFile(chunks, ORIGIN))).toString();
    assert.deepEqual(JSON.parse(kept), whole, `${size}`);
  }
});
