// docs/reverse-proxy.md: each configuration of the page, as it stands there but for addresses, carries a whole flow.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { openTarget, to, type Target } from "../documents/target.ts";
import { freePort } from "../free-port.ts";
import { install, type Installation } from "../service.ts";
import { inTier } from "../tiers.ts";
import { runCaddy } from "./caddy.ts";
import { runNginx, whyNoNginx } from "./nginx.ts";

const NAME = "connect.example.com";
const PAGE = readFileSync(join(import.meta.dirname, "../../docs/reverse-proxy.md"), "utf8");
/** The blocks of one language, in their order: at the root, below a path. */
const blocks = (language: string): readonly string[] =>
  [...PAGE.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(([, text = ""]) => text);
const execute = promisify(execFile);

let installation: Installation & AsyncDisposable;
let target: Target;
let folder: string;
let key: string;
const file = (name: string): string => join(folder, name);

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "latchkey-proxies-"));
  // The pages' proxies have a certificate of their name.
  execFileSync(
    "openssl",
    [
      ...[
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
      ],
      ...["-keyout", file("key.pem"), "-out", file("cert.pem"), "-subj", `/CN=${NAME}`],
      ...["-addext", `subjectAltName=DNS:${NAME}`],
    ],
    { stdio: "ignore" },
  );
  target = await openTarget();
  target.on("POST /login", { ...to("/"), headers: { location: "/", "set-cookie": "sid=1; Path=/" } });
  installation = await install();
  await installation.apply(
    "account: acme",
    `strategy: strat_portal
account: acme
hosts: ["${target.url}"]
fields: [{ key: pass, type: password }]
login: { type: http, steps: [{ request: { method: POST, url: /login, form: { p: "{{ $credential.pass }}" } }, expect: { status: [302] } }] }`,
    `blueprint: items
account: acme
credentials: { it: { strategy: strat_portal } }
nodes:
  - { id: read, type: http, credential: it, request: { url: /items }, records: $ }
  - { id: out, type: output, refKey: out, from: read }`,
  );
  key = await installation.createKey("acme");
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** nginx: a `location` stands in the page's own server. */
function nginxServers(block: string, ports: Ports): string {
  const [server = ""] = blocks("nginx");
  const whole = block.startsWith("location")
    ? server.replace(/ {2}location \/ \{.*?\n {2}\}\n/s, `${block}\n`)
    : block;
  return whole
    .replace("listen 443 ssl", `listen 127.0.0.1:${ports.proxy} ssl`)
    .replace(/(ssl_certificate +)\S+;/, `$1${file("cert.pem")};`)
    .replace(/(ssl_certificate_key +)\S+;/, `$1${file("key.pem")};`)
    .replace("127.0.0.1:8080", `127.0.0.1:${ports.service}`);
}

const caddySites = (block: string, ports: Ports): string =>
  block
    .replace(`${NAME} {`, `https://${NAME}:${ports.proxy} {\n\ttls ${file("cert.pem")} ${file("key.pem")}`)
    .replace("127.0.0.1:8080", `127.0.0.1:${ports.service}`);

interface Ports {
  readonly proxy: number;
  readonly service: number;
}

/** What curl gives for an address of the page's name, through the proxy. */
async function ask(
  ports: Ports,
  url: string,
  ...options: readonly string[]
): Promise<{ status: number; head: string; body: string }> {
  const { stdout } = await execute("curl", [...through(ports), "--include", ...options, url]);
  const at = stdout.indexOf("\r\n\r\n");
  const head = stdout.slice(0, at);
  return { status: Number(/^HTTP\/[\d.]+ (\d+)/.exec(head)?.[1]), head, body: stdout.slice(at + 4) };
}

const through = ({ proxy }: Ports): readonly string[] => [
  ...["--silent", "--show-error", "--max-time", "20", "--cacert", file("cert.pem")],
  ...["--connect-to", `${NAME}:443:127.0.0.1:${proxy}`],
];

/** Everything that one who integrates does, at the public address. */
async function carryFlow(ports: Ports, base: string): Promise<void> {
  const api = async (path: string, body?: object) => {
    const sent = body === undefined ? [] : ["--json", JSON.stringify(body)];
    const answer = await ask(
      ports,
      `${base}/api/v1${path}`,
      "--header",
      `Authorization: Bearer ${key}`,
      ...sent,
    );
    assert.ok(answer.status < 300, `${path}: ${answer.head}\n${answer.body}`);
    return JSON.parse(answer.body);
  };
  const session = await api("/credential-sessions", { strategy_id: "strat_portal" });
  assert.ok(session.hosted_url.startsWith(`${base}/connect/`), session.hosted_url);
  const page = await ask(ports, session.hosted_url);
  assert.equal(page.status, 200, page.head);
  const assets = [...page.body.matchAll(/(?:href|src)="([^"]+\.(?:css|js|svg|ico)[^"]*)"/g)].map(
    ([, at = ""]) => at,
  );
  assert.ok(assets.length > 0, page.body);
  for (const at of assets)
    assert.equal((await ask(ports, new URL(at, session.hosted_url).href)).status, 200, at);
  const csrf = /name="([^"]+)" value="([^"]+)"|type="hidden" name="([^"]+)" value="([^"]+)"/.exec(page.body);
  const cookies = [...page.head.matchAll(/^set-cookie: ([^;\r]+)/gim)].flatMap(([, pair = ""]) => [
    "--cookie",
    pair,
  ]);
  const hidden = [...page.body.matchAll(/<input\b[^>]*type="hidden"[^>]*>/g)].flatMap(([input]) => {
    const attribute = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(input)?.[1] ?? "";
    return ["--data-urlencode", `${attribute("name")}=${attribute("value")}`];
  });
  assert.ok(csrf !== null && hidden.length > 0, page.body);
  const sent = await ask(
    ...([ports, session.hosted_url, ...cookies, ...hidden, "--data-urlencode", "pass=a-password"] as const),
    ...["--header", `Origin: https://${NAME}`],
  );
  assert.ok(sent.status < 400, `${sent.head}\n${sent.body}`);
  const { credential_id: credential } = await api(`/credential-sessions/${session.id}`);

  // The stream gives what happens while the run still goes on: the proxy holds nothing back.
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  target.on("GET /items", async () => {
    await released;
    return { json: [{ n: 1 }] };
  });
  const { id } = await api("/blueprints/items/trigger", { credential_id: credential });
  const stream = spawn("curl", [
    ...[...through(ports), "--no-buffer", "--header", `Authorization: Bearer ${key}`],
    `${base}/api/v1/blueprint-runs/${id}/events`,
  ]);
  let events = "";
  const begun = Promise.withResolvers<void>();
  stream.stdout.on("data", (chunk: Buffer) => {
    events += chunk.toString();
    if (events.includes("event: status")) begun.resolve();
  });
  const over = new Promise<void>((resolve) => stream.once("close", () => resolve()));
  await Promise.race([begun.promise, over]);
  assert.match(events, /^event: status$/m, "an event comes before the run ends");
  assert.doesNotMatch(events, /"status":"completed"/);
  release();
  await over;
  assert.match(events, /"status":"completed"/);

  const { results } = await api(`/blueprint-runs/${id}/results`);
  assert.ok(results.out.startsWith(`${base}/`), results.out);
  assert.equal((await ask(ports, results.out, "--output", file("result"))).status || 200, 200);
  const home = await ask(ports, `${base}/`);
  assert.deepEqual(
    [home.status, /^location: (.*)\r?$/im.exec(home.head)?.[1]?.trim()],
    [302, new URL(`${base}/dashboard`).pathname],
  );
  const dashboard = await ask(ports, `${base}/dashboard`);
  assert.equal(dashboard.status, 200, dashboard.head);
  const at = /<base href="([^"]+)"/.exec(dashboard.body)?.[1] ?? "";
  assert.equal(at, `${new URL(`${base}/dashboard`).pathname}/`);
  const script = /<script[^>]* src="([^"]+)"/.exec(dashboard.body)?.[1] ?? assert.fail(dashboard.body);
  const scriptUrl = new URL(script, new URL(at, base));
  assert.equal(
    (await ask(ports, scriptUrl.href, "--output", file("script"))).status || 200,
    200,
    scriptUrl.href,
  );
  assert.ok(readFileSync(file("script")).length > 1_000);
}

const PROXIES = {
  nginx: async (block: string, ports: Ports) => await runNginx(nginxServers(block, ports), ports.proxy),
  caddyfile: async (block: string, ports: Ports) => await runCaddy(caddySites(block, ports), ports.proxy),
} as const;

describe("the configurations of docs/reverse-proxy.md", { skip: whyNoNginx() ?? false }, () => {
  // Caddy alone is 40 MB to fetch and unpack.
  for (const [language, run] of inTier(Object.entries(PROXIES), ([name]) => name === "nginx")) {
    test(`${language}: two of them`, () => assert.equal(blocks(language).length, 2));
    for (const [index, path] of ["", "/lk"].entries())
      test(`${language}, ${path === "" ? "at the root" : "below a path"}: form, session, run, events, download, dashboard`, async () => {
        const ports = { proxy: await freePort(), service: await freePort() };
        const base = `https://${NAME}${path}`;
        // The settings of the page.
        assert.ok(PAGE.includes(`LATCHKEY_PUBLIC_URL=${base}\nLATCHKEY_TRUSTED_PROXIES=127.0.0.0/8\n`));
        const service = await installation.serve({
          LATCHKEY_PORT: String(ports.service),
          LATCHKEY_PUBLIC_URL: base,
          LATCHKEY_TRUSTED_PROXIES: "127.0.0.0/8",
        });
        await using _proxy = await run(blocks(language)[index] ?? "", ports);
        await carryFlow(ports, base);
        await service.end();
      });
  }
});
