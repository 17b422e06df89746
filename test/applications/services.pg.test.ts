// Services that nobody here wrote, connected as the documentation says: login, list, write, and the same write once more.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { dataOf, openBench, type Bench } from "../documents/bench.ts";
import { startProgram } from "./program.ts";
import { connectApplication, connected, ITEMS, PASSWORD, skip, strategy, USER } from "./stage.ts";

/** `$base64encode` takes no characters beyond U+00FF, and Transmission reads UTF-8. */
const ASCII_PASSWORD = "s3cret + more";

let bench: Bench;
before(async () => {
  if (skip === false) bench = await openBench([]);
});
after(async () => await bench?.[Symbol.asyncDispose]());

test(
  "transmission: JSON by POST, a session id that comes with a 409, and refusals of status 200",
  { skip },
  async () => {
    await using server = await startProgram({
      name: "transmission",
      packages: ["transmission-daemon"],
      program: "usr/bin/transmission-daemon",
      configure: ({ folder, port }) => {
        const off = ["dht", "lpd", "pex", "utp", "port-forwarding", "rpc-whitelist", "rpc-host-whitelist"];
        writeFileSync(
          join(folder, "settings.json"),
          JSON.stringify({
            ...Object.fromEntries(off.map((name) => [`${name}-enabled`, false])),
            "rpc-authentication-required": true,
            "rpc-username": USER,
            "rpc-password": ASCII_PASSWORD,
            "rpc-bind-address": "127.0.0.1",
            "rpc-port": port,
            "bind-address-ipv4": "127.0.0.1",
            "bind-address-ipv6": "::1",
            "download-dir": folder,
          }),
        );
        return { arguments: ["-f", "-g", folder] };
      },
    });
    const basic = `"Basic {{ $base64encode($credential.user & ':' & $credential.pass) }}"`;
    await bench.apply(
      strategy(
        "torrents",
        server.url,
        `
  type: http
  steps:
    - request: { method: POST, url: /transmission/rpc, headers: { Authorization: ${basic} }, json: { method: session-get } }
      expect: { status: [409] }
      extract: { session_id: { header: X-Transmission-Session-Id } }
  session: { headers: { Authorization: ${basic}, X-Transmission-Session-Id: "{{ $session_id }}" } }
  check: { request: { method: POST, url: /transmission/rpc, json: { method: session-get } }, expect: { json: "result = 'success'" } }
  cache: 10m`,
      ),
      connected(
        "torrents-list",
        "torrents",
        `- id: it
  type: http
  credential: app
  effect: read
  request: { method: POST, url: /transmission/rpc, json: { method: torrent-get, arguments: { fields: [name, hashString] } } }
  expect: { json: "result = 'success'" }
  records: arguments.torrents`,
      ),
      connected(
        "torrents-add",
        "torrents",
        `${ITEMS}
- id: it
  type: http
  credential: app
  for_each: rows
  request: { method: POST, url: /transmission/rpc, json: { method: torrent-add, arguments: { filename: "{{ link }}", paused: true } } }
  expect: { json: "result = 'success'" }
  refused: { status: [200], json: "result != 'success'" }
  records: |
    arguments.{ 'name': $append(\`torrent-added\`, \`torrent-duplicate\`).name, 'is_new': $exists(\`torrent-added\`) }`,
      ),
    );
    const run = await connectApplication(bench, "torrents", /expected status 409, got 401/, ASCII_PASSWORD);
    const link = (name: string): { link: string } => ({
      link: `magnet:?xt=urn:btih:${createHash("sha1").update(name).digest("hex")}&dn=${name}`,
    });
    const items = [link("one"), link("two")];
    assert.deepEqual(dataOf(await run("torrents-list")), []);
    const added = dataOf(await run("torrents-add", items));
    assert.deepEqual(added, [
      { name: "one", is_new: true },
      { name: "two", is_new: true },
    ]);
    assert.deepEqual(
      dataOf(await run("torrents-add", items)).map(({ is_new: isNew }) => isNew),
      [false, false],
    );
    assert.deepEqual(
      dataOf(await run("torrents-list")).map(({ name }) => name),
      ["one", "two"],
    );
    assert.match(
      (await run("torrents-add", [{ link: "no link at all" }])).detail ?? "",
      /POST \/transmission\/rpc, record 0: the target refused it \(200\)/,
    );
  },
);

test(
  "etcd: a token of a login by JSON, keys and values in base64, and a write that happens once",
  { skip },
  async () => {
    await using server = await startProgram({
      name: "etcd",
      packages: ["etcd-server"],
      program: "usr/bin/etcd",
      configure: ({ folder, port }) => {
        const [client, peer] = [`http://127.0.0.1:${port}`, "http://127.0.0.1:0"];
        return {
          arguments: [
            ...["--data-dir", folder, "--listen-client-urls", client, "--advertise-client-urls", client],
            ...[
              "--listen-peer-urls",
              peer,
              "--initial-advertise-peer-urls",
              peer,
              "--initial-cluster",
              `default=${peer}`,
            ],
          ],
        };
      },
    });
    for (const [path, body] of [
      ["user/add", { name: "root", password: PASSWORD }],
      ["role/add", { name: "root" }],
      ["user/grant", { user: "root", role: "root" }],
      ["user/add", { name: USER, password: PASSWORD }],
      ["user/grant", { user: USER, role: "root" }],
      ["enable", {}],
    ] as const) {
      const answer = await fetch(`${server.url}/v3/auth/${path}`, {
        method: "POST",
        body: JSON.stringify(body),
      });
      assert.equal(answer.status, 200, await answer.text());
    }
    const key = `"{{ $base64encode('orders/' & number) }}"`;
    await bench.apply(
      strategy(
        "store",
        server.url,
        `
  type: http
  steps:
    - request: { method: POST, url: /v3/auth/authenticate, json: { name: "{{ $credential.user }}", password: "{{ $credential.pass }}" } }
      extract: { access: { json: token } }
  session: { headers: { Authorization: "{{ $access }}" } }
  check: { request: { method: POST, url: /v3/kv/range, json: { key: AA== } } }
  cache: 5m`,
      ),
      connected(
        "store-list",
        "store",
        `- id: it
  type: http
  credential: app
  effect: read
  request: { method: POST, url: /v3/kv/range, json: { key: "{{ $base64encode('orders/') }}", range_end: "{{ $base64encode('orders0') }}" } }
  expect: { min_records: 0, json: $exists(header) }
  records: "kvs.{ 'key': $base64decode(key), 'total': $number($base64decode(value)) }"`,
      ),
      connected(
        "store-write",
        "store",
        `${ITEMS}
- id: it
  type: http
  credential: app
  for_each: rows
  request:
    method: POST
    url: /v3/kv/txn
    json:
      compare: [{ key: ${key}, target: CREATE, result: EQUAL, createRevision: "0" }]
      success: [{ requestPut: { key: ${key}, value: "{{ $base64encode($string(total)) }}" } }]
  expect: { json: succeeded }
  refused: { status: [200], json: $not($exists(succeeded)) }`,
      ),
    );
    const run = await connectApplication(bench, "store", /expected status 200 to 299, got 400/);
    assert.deepEqual(dataOf(await run("store-list")), []);
    const items = [
      { number: 7, total: 12.5 },
      { number: 8, total: 3 },
    ];
    assert.equal((await run("store-write", items)).status.status, "completed");
    assert.match((await run("store-write", items)).detail ?? "", /record 0: the target refused it \(200\)/);
    assert.deepEqual(dataOf(await run("store-list")), [
      { key: "orders/7", total: 12.5 },
      { key: "orders/8", total: 3 },
    ]);
  },
);
