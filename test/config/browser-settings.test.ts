import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readConfig } from "#service/settings/settings.ts";

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
