import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { totalmem } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readBrowser, readMachine } from "#service/settings/browser.ts";
import type { Checked } from "#service/settings/read-value.ts";
import { ConfigError, readConfig } from "#service/settings/settings.ts";
import { openMemoryGroup, skipMemoryGroup } from "../flow/memory-group.ts";
import { testInAll } from "../tiers.ts";

const LIMIT_BYTES = 3 * 1_073_741_824;

test("the settings of browsers have defaults, and every value has bounds", () => {
  const { program, memoryBytes, sandbox, network, uids, max } = readConfig({}).browser;
  assert.deepEqual(
    { program, memoryBytes, sandbox, network, uids },
    {
      program: null,
      memoryBytes: 1_073_741_824,
      sandbox: true,
      network: "host",
      uids: { first: 61_184, count: 4_336 },
    },
  );
  assert.ok(max >= 1);
  const given = readConfig({
    LATCHKEY_BROWSER: "/opt/chromium",
    LATCHKEY_BROWSERS: "3",
    LATCHKEY_BROWSER_MEMORY_MB: "512",
    LATCHKEY_BROWSER_SANDBOX: "off",
    LATCHKEY_BROWSER_NETWORK: "own",
    LATCHKEY_BROWSER_UIDS: "70000-70009",
  }).browser;
  assert.deepEqual(given, {
    program: "/opt/chromium",
    max: 3,
    memoryBytes: 536_870_912,
    sandbox: false,
    network: "own",
    uids: { first: 70_000, count: 10 },
  });
});

test("without LATCHKEY_BROWSERS there are as many as half the cores, and as the memory has room for", () => {
  const GIB = 1_073_741_824;
  const most = (cores: number, memoryBytes: number, browserMb = 1_024): number => {
    const checked: Checked = (name, _parse, _expected, fallback) =>
      name === "LATCHKEY_BROWSER_MEMORY_MB" ? (browserMb as typeof fallback) : fallback;
    return readBrowser(checked, { cores, memoryBytes }).max;
  };
  assert.deepEqual(
    [
      most(16, 64 * GIB),
      most(16, 3 * GIB),
      most(16, 3 * GIB, 256),
      most(16, 1 * GIB),
      most(1, 64 * GIB),
      most(512, 1_024 * GIB),
    ],
    [8, 2, 8, 1, 1, 100],
  );
  const { cores, memoryBytes } = readMachine();
  assert.ok(cores >= 1 && memoryBytes > 0 && memoryBytes <= totalmem());
});

testInAll(
  "the same with limits that are given",
  "the memory limit of a container counts",
  { skip: skipMemoryGroup },
  async () => {
    const group = openMemoryGroup();
    group.setLimit(LIMIT_BYTES);
    const program = `import { readMachine } from "#service/settings/browser.ts"; console.log(readMachine().memoryBytes)`;
    try {
      const printed = execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
        cwd: join(import.meta.dirname, "../.."),
        env: { ...process.env, ...group.environment },
        encoding: "utf8",
      });
      assert.equal(Number(printed), LIMIT_BYTES);
    } finally {
      await group.remove();
    }
  },
);

test("a wrong value is named with what it must be", () => {
  for (const [name, value] of [
    ["LATCHKEY_BROWSER", "chromium"],
    ["LATCHKEY_BROWSERS", "0"],
    ["LATCHKEY_BROWSER_MEMORY_MB", "64"],
    ["LATCHKEY_BROWSER_SANDBOX", "no"],
    ["LATCHKEY_BROWSER_UIDS", "0-10"],
    ["LATCHKEY_BROWSER_UIDS", "70009-70000"],
    ["LATCHKEY_BROWSER_NETWORK", "bridge"],
  ] as const)
    assert.throws(
      () => readConfig({ [name]: value }),
      (error: unknown) =>
        error instanceof ConfigError && error.problems.some((each) => each.startsWith(`${name} `)),
      name,
    );
});
