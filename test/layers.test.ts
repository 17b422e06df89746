import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import {
  FENCES,
  LAYERS,
  ROOMS,
  SMALL_PLACES,
  type Fence,
  type Layer,
  type Place,
} from "../scripts/layers.ts";
import { openScratch, type Scratch } from "./lint-scratch.ts";

const root = dirname(import.meta.dirname);
const folders: readonly string[] = LAYERS.map((layer) => layer.folder);

let scratch: Scratch;
before(async () => {
  scratch = await openScratch();
});
after(async () => await scratch?.[Symbol.asyncDispose]());

type Probe = { code: string; isForbidden: boolean };

/** Lints one probe a line, in several files of one place, and compares line by line. */
async function assertProbes(
  places: readonly { files: readonly string[]; probes: readonly Probe[] }[],
): Promise<number> {
  const sources: Record<string, readonly string[]> = {};
  for (const { files, probes } of places)
    for (const file of files)
      sources[file] = probes.map(({ code }, index) => code.replaceAll("§", String(index + 1)));
  const findings = await scratch.lint(sources);
  const fenceRules = /no-restricted-(imports|globals|properties)/;
  const flagged = new Set(
    findings.filter(({ rule }) => fenceRules.test(rule)).map(({ file, line }) => `${file}:${line}`),
  );
  const wanted = places.flatMap(({ files, probes }) =>
    files.flatMap((file) =>
      probes.flatMap((probe, index) => (probe.isForbidden ? [`${file}:${index + 1}`] : [])),
    ),
  );
  const shown = (spots: Iterable<string>): string[] =>
    [...spots].map((spot) => {
      const [file = "", line = "0"] = spot.split(":");
      return `${spot} ${sources[file]?.[Number(line) - 1] ?? ""}`;
    });
  assert.deepEqual(shown(wanted.filter((spot) => !flagged.has(spot))), [], "forbidden, but not flagged");
  assert.deepEqual(shown([...flagged].filter((spot) => !wanted.includes(spot))), [], "allowed, but flagged");
  return wanted.length;
}

const SMALL_PLACE_FILES: Record<(typeof SMALL_PLACES)[number]["name"], readonly string[]> = {
  "db/embedded": ["src/db/embedded.ts", "src/db/embedded/start.ts", "src/db/embedded-postgres.ts"],
  "worker/quarantine": ["src/worker/quarantine.ts"],
  "cli/demo.ts": ["src/cli/demo.ts"],
  "answers/browser": ["src/answers/browser/locator.ts", "src/answers/browser/deep/er/probe.ts"],
  "outbound/browser": ["src/outbound/browser/launcher.ts", "src/outbound/browser/deep/er/probe.ts"],
  "outbound/browser/driver.ts": ["src/outbound/browser/driver.ts"],
  "hosted/browser": ["src/hosted/browser/probe.ts"],
  "engine/login": ["src/engine/login/login.ts", "src/engine/login/deep/er/probe.ts"],
  "lib/start-thread.ts": ["src/lib/start-thread.ts"],
  "nodes/author.ts": ["src/nodes/author.ts"],
  "service/api-processes": ["src/service/api-processes.ts"],
  "service/metrics-server": ["src/service/metrics-server.ts"],
  "service/server.ts": ["src/service/server.ts"],
  "service/settings": ["src/service/settings/settings.ts", "src/service/settings/deep/er/probe.ts"],
};

type TestPlace = { name: Place; within: Place; files: readonly string[] };

/** Every place with the probe files that belong to it, also deeper in the folder. */
const PLACES: readonly TestPlace[] = [
  ...LAYERS.map(({ folder }): TestPlace => {
    return {
      name: folder,
      within: folder,
      files: [`src/${folder}/probe.ts`, `src/${folder}/deep/er/probe.ts`],
    };
  }),
  ...SMALL_PLACES.map((place): TestPlace => ({ ...place, files: SMALL_PLACE_FILES[place.name] })),
];

/** All the ways to import a module; `§` becomes the line's number, so that names differ. */
function importsOf(specifier: string): string[] {
  return [
    `import "${specifier}";`,
    `import { a as a§ } from "${specifier}"; a§();`,
    `import type { A as A§ } from "${specifier}"; export type B§ = A§;`,
    `import * as all§ from "${specifier}"; all§.a();`,
    `export { a as b§ } from "${specifier}";`,
    `export * from "${specifier}";`,
    `export const later§ = () => import("${specifier}");`,
  ];
}

test("every folder of src is a layer, and a layer imports only from layers below it", async () => {
  const entries = await readdir(join(root, "src"), { withFileTypes: true });
  const present = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  assert.deepEqual(
    present.filter((folder) => !folders.includes(folder)),
    [],
  );
  for (const { folder, mayImport } of LAYERS as readonly Layer[]) {
    for (const other of mayImport) {
      assert.ok(
        folders.indexOf(other) > folders.indexOf(folder),
        `${folder} -> ${other} does not go downwards`,
      );
    }
  }
});

test("every room inside a layer is in the table, with what lives there, and no other is", async () => {
  for (const { folder } of LAYERS) {
    const entries = await readdir(join(root, "src", folder), { withFileTypes: true });
    const present = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
    assert.deepEqual(Object.keys(ROOMS[folder] ?? {}).toSorted(), present.toSorted(), folder);
  }
});

test("every import of a layer that the table does not allow fails, every other passes", async () => {
  const mayImport = (from: Place, to: string): boolean => {
    const layer = (LAYERS as readonly Layer[]).find(({ folder }) => folder === from);
    return from === to || layer?.mayImport.includes(to) === true;
  };
  const places = PLACES.map(({ within, files }) => {
    const probes = folders.flatMap((to) =>
      importsOf(`#${to}/some-file.ts`).map((code) => ({ code, isForbidden: !mayImport(within, to) })),
    );
    return { files, probes };
  });
  const forbidden = await assertProbes(places);
  assert.ok(forbidden > 2000, `only ${forbidden} forbidden imports were tried`);
});

test("parent folders, absolute paths and URLs are no way around the layers", async () => {
  const specifiers = [
    "../lib/assert.ts",
    "./../db/pool.ts",
    "..",
    "./a/../../db/pool.ts",
    "/etc/a.ts",
    "file:///a.ts",
  ];
  const probes = [
    ...specifiers.flatMap(importsOf).map((code) => ({ code, isForbidden: true })),
    ...importsOf("./beside.ts").map((code) => ({ code, isForbidden: false })),
    ...importsOf("./deep/er/below.ts").map((code) => ({ code, isForbidden: false })),
    ...importsOf("node:path").map((code) => ({ code, isForbidden: false })),
  ];
  await assertProbes(PLACES.map(({ files }) => ({ files, probes })));
});

type Rule = {
  only?: readonly Place[];
  except?: readonly Place[];
  typesIn?: readonly Place[] | "everywhere";
};

/** What each fence is about, written out: not derived from the patterns that are under test. */
const FENCED_MODULES: readonly (Rule & { modules: string })[] = [
  { modules: "pg pg-pool pg/lib/client.js", only: ["db"] },
  { modules: "graphile-worker", only: ["worker", "db"] },
  { modules: "undici proxy-chain nodemailer", only: ["outbound"] },
  { modules: "playwright-core", only: ["outbound"], typesIn: ["answers/browser"] },
  {
    modules: "http node:http node:https node:http2 node:net node:tls node:dns node:dns/promises node:dgram",
    only: ["outbound", "service/metrics-server"],
    typesIn: ["api", "hosted", "operator", "service/server.ts"],
  },
  { modules: "jose jose/errors", only: ["vault"] },
  { modules: "@aws-sdk/client-s3 @aws-sdk/client-kms", only: ["blobs", "vault"] },
  { modules: "jsonata", only: ["expressions"] },
  { modules: "typebox typebox/value", only: ["nodes/author.ts"], typesIn: "everywhere" },
  { modules: "ajv ajv/dist/2020.js ajv-formats", only: [], typesIn: "everywhere" },
  { modules: "yaml yaml/util", only: [], typesIn: "everywhere" },
  { modules: "fastify @fastify/multipart", only: ["api", "hosted", "operator", "service/server.ts"] },
  {
    modules: "node:child_process child_process node:cluster",
    only: ["db/embedded", "worker/quarantine", "outbound/browser", "service/api-processes"],
  },
  {
    modules:
      "./open-credential.ts ./open-credential-tokens.ts ./login/open-credential-bytes.ts #engine/login/open-credential.ts",
    only: ["engine/login"],
  },
  { modules: "node:fs node:fs/promises node:perf_hooks", except: ["domain"] },
  { modules: "#examples/demo/run-demo.ts", only: ["cli/demo.ts"] },
  { modules: "node:vm", only: [] },
  // Not fenced: names that only begin like a fenced one, and what is free on purpose.
  { modules: "pgvector josefine undici-types node:path node:crypto-like ajv8 yamljs hono/html", except: [] },
];

const STARTING: readonly Place[] = ["lib/start-thread.ts"];
const FETCHING: readonly Place[] = ["outbound", "hosted/browser"];

const FENCED_CODE: readonly (Rule & { code: string })[] = [
  { code: `import { createCipheriv } from "node:crypto"; createCipheriv();`, only: ["vault"] },
  { code: `import { createDecipheriv } from "node:crypto"; createDecipheriv();`, only: ["vault"] },
  {
    code: `import { diffieHellman, webcrypto } from "node:crypto"; diffieHellman(webcrypto);`,
    only: ["vault"],
  },
  { code: `import { createCipheriv as innocent } from "crypto"; innocent();`, only: ["vault"] },
  { code: `import byDefault from "node:crypto"; byDefault.createCipheriv();`, only: ["vault"] },
  { code: `import * as nodeCrypto from "node:crypto"; nodeCrypto.createCipheriv();`, only: ["vault"] },
  {
    code: `import { createHash, createHmac, timingSafeEqual } from "node:crypto"; createHash();`,
    except: [],
  },
  { code: `import { randomBytes, randomUUIDv7 } from "node:crypto"; randomBytes();`, except: ["domain"] },
  { code: `export const random = () => Math.random();`, except: ["domain"] },
  { code: `export const id = () => crypto.randomUUID();`, except: ["domain"] },
  { code: `export const key = () => crypto.subtle.generateKey();`, only: ["vault"] },
  { code: `export const got = () => fetch("https://example.com");`, only: FETCHING },
  {
    code: `export const viaGlobal = () => globalThis.fetch("https://example.com");`,
    only: FETCHING,
  },
  { code: `export const socket = () => new WebSocket("wss://example.com");`, only: FETCHING },
  { code: `export const now = () => Date.now();`, except: ["domain", "actions", "engine"] },
  { code: `export const today = () => new Date();`, except: ["domain", "actions", "engine"] },
  { code: `export const global = () => globalThis.Date.now();`, except: ["domain", "actions", "engine"] },
  { code: `export type At = { at: Date };`, except: [] },
  {
    code: `export const home = process.env["HOME"];`,
    only: ["service/settings", "outbound/browser/driver.ts"],
  },
  { code: `export const { env } = process;`, only: ["service/settings", "outbound/browser/driver.ts"] },
  {
    code: `import { env as surroundings } from "node:process"; surroundings["HOME"];`,
    only: ["service/settings", "outbound/browser/driver.ts"],
  },
  { code: `import { Worker as Thread§ } from "node:worker_threads"; new Thread§("a");`, only: STARTING },
  { code: `import { Worker } from "worker_threads"; new Worker("a");`, only: STARTING },
  { code: `import threads§ from "node:worker_threads"; new threads§.Worker("a");`, only: STARTING },
  { code: `import * as all§ from "node:worker_threads"; new all§.Worker("a");`, only: STARTING },
  { code: `export { Worker as Reexported§ } from "node:worker_threads";`, only: STARTING },
  { code: `export * from "node:worker_threads";`, only: STARTING },
  {
    code: `import type { Worker as W§ } from "node:worker_threads"; export type T§ = W§;`,
    except: ["domain"],
  },
  { code: `import { parentPort as port§ } from "node:worker_threads"; port§?.close();`, except: ["domain"] },
  { code: `export const print = () => console.log("a");`, only: ["cli"] },
  ...["ip", "ips", "host", "hostname", "protocol"].map((name) => ({
    code: `export const caller§ = (request: Record<string, string>) => request.${name};`,
    only: [],
  })),
];

function isAllowed(rule: Rule, { name, within }: TestPlace): boolean {
  const isIn = (list: readonly Place[]): boolean => list.includes(name) || list.includes(within);
  return rule.only === undefined ? !isIn(rule.except ?? []) : isIn(rule.only);
}

test("every package fence holds in every place, and opens where the table says", async () => {
  const places = PLACES.map((place) => {
    const probes = FENCED_MODULES.flatMap(({ modules, typesIn, ...rule }) => {
      const mayUseTypes = typesIn === "everywhere" || isAllowed({ only: typesIn ?? [] }, place);
      const isOpen = (code: string): boolean =>
        isAllowed(rule, place) || (mayUseTypes && code.startsWith("import type"));
      return modules
        .split(" ")
        .flatMap(importsOf)
        .map((code) => ({ code, isForbidden: !isOpen(code) }));
    });
    return { files: place.files, probes };
  });
  await assertProbes(places);
});

test("globals, properties and single names are fenced like packages", async () => {
  const places = PLACES.map((place) => {
    const probes = FENCED_CODE.map(({ code, ...rule }) => ({ code, isForbidden: !isAllowed(rule, place) }));
    return { files: place.files, probes };
  });
  await assertProbes(places);
});

test("every fence of scripts/layers.ts has a probe above", () => {
  const modules = FENCED_MODULES.flatMap((entry) => entry.modules.split(" "));
  const samples = [...modules, ...FENCED_CODE.map(({ code }) => code)].join("\n");
  const covers = (fence: Fence): boolean => {
    const words = [
      ...(fence.globals ?? []),
      ...(fence.names ?? []).flatMap(({ names }) => names),
      ...(fence.properties ?? []).map(({ object, property }) => `${object}.${property}`),
    ];
    const patterns = (fence.modules ?? []).map((pattern) => new RegExp(pattern, "m"));
    return patterns.some((pattern) => pattern.test(samples)) || words.some((word) => samples.includes(word));
  };
  assert.deepEqual(
    FENCES.filter((fence) => !covers(fence)).map((fence) => fence.what),
    [],
  );
});

test("no source file switches a rule off, or takes a Node module where the fences of names do not look", async () => {
  const entries = await readdir(join(root, "src"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".ts"));
  const found: string[] = [];
  for (const { parentPath, name } of files) {
    const text = await readFile(join(parentPath, name), "utf8");
    const isAround =
      /(oxlint|eslint)-disable|@ts-(ignore|nocheck)/.test(text) ||
      /\bimport\(\s*["'`](node:|crypto|process|worker_threads)|\bgetBuiltinModule\b/.test(text);
    if (isAround) found.push(join(parentPath, name));
  }
  assert.deepEqual(found, []);
});
