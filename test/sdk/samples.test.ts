/** The examples of `/docs` in TypeScript and Python: each reaches the operation that it stands beside, with the contract's own example. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import { SDK_SETUP, sdkSamples } from "../../scripts/generate/sdk-samples.ts";
import { Latchkey } from "../../sdk/typescript/src/latchkey.ts";
import { must } from "#lib/assert.ts";
import { testInAll } from "../tiers.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const sourceOf = (operation: (typeof OPERATIONS)[number], language: string): string =>
  must(
    sdkSamples(operation).find(({ lang }) => lang === language),
    language,
  ).source;

interface Sent {
  readonly method: string;
  readonly url: URL;
  readonly body: unknown;
}

/** Runs an example with a client that sends nothing. */
async function sentBy(source: string): Promise<Sent> {
  const sent: Sent[] = [];
  const latchkey = new Latchkey({
    apiKey: "lk_a_key",
    baseUrl: "https://connect.example.com",
    fetch: async (url, { method = "GET", body } = {}) => {
      sent.push({
        method,
        url: new URL(String(url)),
        body: typeof body === "string" ? JSON.parse(body) : null,
      });
      // What ends a stream, and has no body; a response with one otherwise.
      if (method === "DELETE" || String(url).endsWith("/events")) return new Response(null, { status: 204 });
      return Response.json({ id: "x" });
    },
  });
  const AsyncFunction = async function () {}.constructor as new (
    ...parts: string[]
  ) => (latchkey: Latchkey) => Promise<void>;
  await new AsyncFunction("latchkey", source)(latchkey);
  assert.equal(sent.length, 1);
  return must(sent[0], "a request");
}

test("each example in TypeScript sends its operation's request, with the contract's example as its body", async () => {
  for (const operation of OPERATIONS) {
    const { method, url, body } = await sentBy(sourceOf(operation, "TypeScript"));
    const path = operation.path.replace(/\{(\w+)\}/g, (_all, name: string) =>
      encodeURIComponent(must(operation.parameters.find((each) => each.name === name)?.example, name)),
    );
    assert.equal(
      `${method} ${url.pathname}`,
      `${operation.method.toUpperCase()} ${operation.isOpen ? "" : "/api/v1"}${path}`,
      operation.id,
    );
    const [example = null] = Object.values(operation.body?.content["application/json"]?.examples ?? {});
    assert.deepEqual(body, example, operation.id);
  }
});

test("each example in Python calls a method that the generated client has, for that operation", () => {
  const client = readFileSync(join(ROOT, "sdk/python/latchkey/_client.py"), "utf8");
  for (const operation of OPERATIONS) {
    const source = sourceOf(operation, "Python");
    const [, method] = /client\.(?:\w+\.)?(\w+)\(/.exec(source) ?? [];
    const declared = new RegExp(`def ${method}\\([\\s\\S]*?Call\\(\\s*"(\\w+)"`, "g");
    const called = [...client.matchAll(declared)].map(([, id]) => id);
    assert.ok(called.includes(operation.id), `${operation.id}: ${source}`);
  }
});

testInAll(
  "each example is run (above), which finds what does not exist; types are looked at only here",
  "the examples in TypeScript fit the SDK's types",
  {},
  () => {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-samples-"));
    try {
      const own = JSON.stringify(join(ROOT, "sdk/typescript/src/latchkey.ts"));
      const setup = SDK_SETUP.typescript("https://connect.example.com").replace('"@latchkey/sdk"', own);
      const examples = OPERATIONS.map((operation) => `{\n${sourceOf(operation, "TypeScript")}\n}\n`);
      writeFileSync(join(folder, "samples.ts"), `${setup}\n${examples.join("")}`);
      const compilerOptions = {
        ...{ strict: true, noEmit: true, target: "es2022", module: "esnext", moduleResolution: "bundler" },
        ...{ lib: ["es2023", "dom", "dom.iterable", "dom.asynciterable"], allowImportingTsExtensions: true },
        ...{ types: ["node"], typeRoots: [join(ROOT, "node_modules/@types")], skipLibCheck: true },
      };
      writeFileSync(
        join(folder, "tsconfig.json"),
        JSON.stringify({ compilerOptions, include: ["samples.ts"] }),
      );
      const check = () =>
        execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder], {
          encoding: "utf8",
          stdio: "pipe",
        });
      check();
      // The check finds what is wrong.
      writeFileSync(join(folder, "samples.ts"), `${setup}\nawait latchkey.runs.cancel(17);\n`);
      assert.throws(check, ({ stdout }: { stdout: string }) => /TS2345/.test(stdout));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
