// The shipments of the portal, as their page's script asks for them.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { parse } from "csv-parse/sync";
import type { Shipment } from "../../examples/portal/shipments.ts";
import { account, codeNow, openPortal } from "./portal-visitor.ts";

type Send = (path: string, body?: object, token?: string) => Promise<Response>;

async function open(t: TestContext): Promise<Send> {
  const { url } = await openPortal(t);
  return async (path, body, token) =>
    await fetch(url + path, {
      ...(body && { method: "POST", body: JSON.stringify(body) }),
      headers: {
        ...(body && { "content-type": "application/json" }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    });
}

async function signIn(send: Send, login: object): Promise<string> {
  const answer = await send("/shipments/api/session", login);
  assert.equal(answer.status, 201);
  assert.deepEqual(answer.headers.getSetCookie(), [], "the session is a token and no cookie");
  return ((await answer.json()) as { token: string }).token;
}

const { username, password } = account("demo");

test("the page has nothing in its HTML, and may run only the portal's own script", async (t) => {
  const send = await open(t);
  for (const path of ["/shipments", "/shipments/sign-in", "/shipments/pickups"]) {
    const answer = await send(path);
    assert.equal(answer.status, 200, path);
    assert.match(
      answer.headers.get("content-security-policy") ?? "",
      /script-src 'self'; connect-src 'self';/,
    );
    assert.doesNotMatch(await answer.text(), /<(form|input|table)/);
  }
  assert.match((await send("/shipments/page.js")).headers.get("content-type") ?? "", /^text\/javascript/);
});

test("a token is given for a password, and with a second factor for a code, too; without it nothing is shown", async (t) => {
  const send = await open(t);
  for (const path of ["list", "export", "items/SH-0001", "pickups", "me"])
    assert.equal((await send(`/shipments/api/${path}`)).status, 401, path);
  const wrong = await send("/shipments/api/session", { username, password: "wrong" });
  assert.deepEqual([wrong.status, await wrong.json()], [401, { error: "Wrong username or password" }]);
  const token = await signIn(send, { username, password });
  assert.equal((await send("/shipments/api/me", undefined, token)).status, 200);

  const second = account("demo-totp");
  const login = { username: second.username, password: second.password };
  const asked = await send("/shipments/api/session", login);
  assert.deepEqual([asked.status, await asked.json()], [202, { needs: "code" }]);
  assert.equal((await send("/shipments/api/session", { ...login, code: "000000" })).status, 401);
  await signIn(send, { ...login, code: codeNow(second.totpSecret) });
});

test("pages, filters, the export and the details have the same shipments", async (t) => {
  const send = await open(t);
  const token = await signIn(send, { username, password });
  const read = async <T>(path: string): Promise<T> =>
    (await (await send(`/shipments/api/${path}`, undefined, token)).json()) as T;
  type List = { items: readonly Shipment[]; pages: number; total: number };
  const first = await read<List>("list?status=delayed");
  assert.deepEqual([first.pages, first.total], [3, 24]);
  const pages = await Promise.all(
    [1, 2, 3].map(async (page) => await read<List>(`list?status=delayed&page=${page}`)),
  );
  const delayed = pages.flatMap(({ items }) => items.map(({ number }) => number));
  const csv: Record<string, string>[] = parse(
    await (await send("/shipments/api/export", undefined, token)).text(),
    { columns: true },
  );
  assert.deepEqual(
    delayed,
    csv.filter(({ status }) => status === "delayed").map(({ number }) => number),
  );
  assert.deepEqual(await read("items/SH-0004"), first.items[0]);
  assert.deepEqual((await read<List>("list?search=sh-009")).total, 7);
  assert.equal((await send("/shipments/api/list?page=99", undefined, token)).status, 404);
});

test("a pickup is booked once for a shipment", async (t) => {
  const send = await open(t);
  const token = await signIn(send, { username, password });
  const book = async (shipment: string, day: string): Promise<number> =>
    (await send("/shipments/api/pickups", { shipment, day }, token)).status;
  assert.deepEqual(
    [
      await book("SH-0004", "2026-05-04"),
      await book("SH-0004", "2026-05-05"),
      await book("SH-9999", "2026-05-04"),
    ],
    [201, 409, 422],
  );
  assert.equal(await book("SH-0008", "tomorrow"), 422);
  const { pickups } = (await (await send("/shipments/api/pickups", undefined, token)).json()) as {
    pickups: object[];
  };
  assert.deepEqual(pickups, [{ id: "PU-0001", shipment: "SH-0004", day: "2026-05-04", booked_by: username }]);
});
