// Finding M4: behind a proxy the client is who the proxy says, and nobody else's word counts. Through the nginx of Debian.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { after, before, describe, test } from "node:test";
import { limits } from "#domain/limits.ts";
import { sendPlain, type OperatorAnswer } from "../operator/browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "../operator/stage.ts";
import { startNginx, whyNoNginx, type Nginx } from "./nginx.ts";

/** Where each proxy sends from. Clients are elsewhere in 127.0.0.0/8. */
const PROXIES = { near: "127.0.0.51", edge: "127.0.0.52", rfc7239: "127.0.0.53", stranger: "127.0.0.99" };
const APPEND = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;";

let stage: OperatorStage;
let nginx: Nginx;
let urls: Record<"near" | "edge" | "rfc7239" | "stranger" | "bare", string>;

const skip = whyNoNginx() ?? false;

before(async () => {
  stage = await openOperatorStage({
    LATCHKEY_TRUSTED_PROXIES: `${PROXIES.near}/32, ${PROXIES.edge}/32, ${PROXIES.rfc7239}/32`,
  });
  if (skip !== false) return;
  const to = stage.service.url;
  nginx = await startNginx([
    { to, from: PROXIES.near, directives: APPEND },
    { to: "hop:0", from: PROXIES.edge, directives: APPEND },
    {
      to,
      from: PROXIES.rfc7239,
      directives: `proxy_set_header X-Forwarded-For "";
      proxy_set_header Forwarded "$http_forwarded, for=\\"$remote_addr:$remote_port\\";proto=http";`,
    },
    { to, from: PROXIES.stranger, directives: APPEND },
  ]);
  const [near = "", edge = "", rfc7239 = "", stranger = ""] = nginx.urls;
  urls = { near, edge, rfc7239, stranger, bare: to };
});
after(async () => {
  await nginx?.[Symbol.asyncDispose]();
  await stage?.[Symbol.asyncDispose]();
});

async function signIn(
  way: keyof typeof urls,
  { email, password }: Pick<Someone, "email" | "password">,
  client: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<OperatorAnswer> {
  const body = JSON.stringify({ email, password });
  const all = {
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    "X-CSRF-Token": "x",
    ...headers,
  };
  return await sendPlain(`${urls[way]}/operator/v1/session`, "POST", all, body, client);
}

/** What the newest entry about a subject says. */
async function addressOnRecord(subject: string): Promise<unknown> {
  const [row] = await stage.db.query<{ detail: string }>(
    "select detail from audit_entry where subject_id = $1 order by occurred_at desc, id desc limit 1",
    [subject],
  );
  return JSON.parse(row?.detail ?? "{}").address;
}

const SPOOFED = {
  "X-Forwarded-For": `203.0.113.9, ${PROXIES.near}`,
  Forwarded: "for=203.0.113.8",
  "X-Real-IP": "203.0.113.7",
  "X-Forwarded-Proto": "https",
  "X-Forwarded-Host": "evil.example",
};

describe("the client's address", { skip }, () => {
  const ways: readonly (readonly [
    way: keyof typeof urls,
    what: string,
    address: (client: string) => string,
  ])[] = [
    ["near", "one proxy", (client) => client],
    ["edge", "two proxies", (client) => client],
    ["rfc7239", "a proxy that writes Forwarded", (client) => client],
    ["stranger", "a proxy that is not listed", () => PROXIES.stranger],
    ["bare", "no proxy", (client) => client],
  ];
  for (const [index, [way, what, address]] of ways.entries())
    test(`through ${what}: the audit log has it, whatever headers the client sends`, async () => {
      const someone = await stage.operator();
      const client = `127.9.${index}.1`;
      for (const headers of [
        {},
        SPOOFED,
        { Forwarded: 'for="203.0.113.8' },
        { "X-Forwarded-For": "\\, ,%%" },
      ]) {
        const answer = await signIn(way, someone, client, headers);
        assert.equal(answer.status, 201, answer.text);
        assert.equal(await addressOnRecord(someone.id), address(client), JSON.stringify(headers));
        // Neither do they say how the service is reached.
        assert.match(String(answer.headers["set-cookie"]), /latchkey_operator=/);
        assert.doesNotMatch(String(answer.headers["set-cookie"]), /Secure|__Host|__Secure/);
      }
      assert.equal((await signIn(way, { ...someone, password: "wrong" }, client, SPOOFED)).status, 401);
      assert.equal(await addressOnRecord(someone.id), address(client), "of a refused one, too");
    });
});

describe("who is counted", { skip }, () => {
  test("M4: a flood of sign-ins through the proxies refuses its own client, whatever it spoofs, and no other", async () => {
    for (const way of ["edge", "rfc7239"] as const) {
      const flooder = `127.9.9.${10 + way.length}`;
      let answer: OperatorAnswer | undefined;
      for (let tries = 0; tries < limits.signIns.burst * 3 && answer?.status !== 429; tries++) {
        const headers = { "X-Forwarded-For": `203.0.113.${tries}`, Forwarded: `for=203.0.113.${tries}` };
        answer = await signIn(way, { email: `nobody-${tries}@${way}`, password: "wrong" }, flooder, headers);
      }
      assert.equal(answer?.status, 429, `${way}: the flood is refused`);
      const someone = await stage.operator();
      assert.equal((await signIn(way, someone, "127.9.9.2")).status, 201, `${way}: another client is not`);
    }
  });

  test("wrong API keys are counted by client, too", async () => {
    const ask = async (client: string, spoofed: number): Promise<number> =>
      (
        await sendPlain(
          `${urls.near}/api/v1/credential-sessions/sess_x`,
          "GET",
          { Authorization: "Bearer lk_wrong", "X-Forwarded-For": `203.0.113.${spoofed % 250}` },
          undefined,
          client,
        )
      ).status;
    let refused = 0;
    for (let round = 0; round < 20 && refused === 0; round++) {
      const statuses = await Promise.all(
        Array.from({ length: 50 }, (_, index) => ask("127.9.8.1", round * 50 + index)),
      );
      refused = statuses.filter((status) => status === 429).length;
    }
    assert.ok(refused > 0, "1,000 wrong keys of one client were all looked at");
    assert.equal(await ask("127.9.8.2", 1), 401);
  });
});

test("a service without the setting says once that a proxy seems to be there", async () => {
  const service = await stage.installation.serve({ LATCHKEY_TRUSTED_PROXIES: "" });
  const told = (): number => stage.installation.logs().split("LATCHKEY_TRUSTED_PROXIES is empty").length - 1;
  assert.equal(told(), 0);
  for (let tries = 0; tries < 3; tries++)
    await sendPlain(`${service.url}/api/v1/credential-sessions/x`, "GET", {
      "X-Forwarded-For": "203.0.113.9",
    });
  assert.equal(told(), 1);
  await service.end();
});

/** An address of this machine that is not loopback: what a stranger's connection looks like. */
const outward = Object.values(networkInterfaces())
  .flat()
  .find((entry) => entry !== undefined && !entry.internal && entry.family === "IPv4")?.address;

test(
  "M10: a client that is no proxy has so many connections and no more",
  { skip: outward === undefined },
  async () => {
    const service = await stage.installation.serve({
      LATCHKEY_HOST: "0.0.0.0",
      LATCHKEY_TRUSTED_PROXIES: "",
    });
    const port = Number(new URL(service.url).port);
    const sockets: Socket[] = [];
    const isServed = async (): Promise<boolean> => {
      const socket = connect({ port, host: outward ?? "" });
      sockets.push(socket);
      return await new Promise((resolve) => {
        socket.once("data", () => resolve(true));
        socket.once("error", () => resolve(false));
        socket.once("close", () => resolve(false));
        socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
      });
    };
    const served = [];
    for (let opened = 0; opened < limits.connections.perClientMax + 4; opened++)
      served.push(await isServed());
    assert.deepEqual(
      [served.indexOf(false), served.filter(Boolean).length],
      [limits.connections.perClientMax, limits.connections.perClientMax],
    );
    const good = await sendPlain(`http://127.0.0.1:${port}/healthz`, "GET", {});
    assert.equal(good.status, 200);
    for (const socket of sockets) socket.destroy();
    await service.end();
  },
);
