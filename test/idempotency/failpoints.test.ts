// LATCHKEY_FAILPOINTS is for fault tests: empty by default, and a text that arms nothing must not look as if it did.
import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { FAILPOINTS } from "#lib/failpoint.ts";
import { ConfigError, readConfig } from "../../src/service/settings/settings.ts";

const read = (text?: string): unknown => readConfig({ LATCHKEY_FAILPOINTS: text }, tmpdir()).failpoints;

test("no fail-point is armed by default, and an empty text arms none", () => {
  assert.deepEqual(read(), []);
  assert.deepEqual(read(" "), []);
});

test("every named point can be armed with each action, at a hit", () => {
  for (const name of FAILPOINTS) {
    assert.deepEqual(read(`${name}=kill, ${name}=throw:3,${name}=delay:12`), [
      { name, action: "kill", hit: 1 },
      { name, action: "throw", hit: 3 },
      { name, action: "delay", hit: 12 },
    ]);
  }
});

test("a wrong name, action, hit or list is a ConfigError that names the setting and what it takes", () => {
  const name = FAILPOINTS[0];
  for (const text of [
    name,
    "nowhere=kill",
    `${name}=explode`,
    `${name}=kill:0`,
    `${name}=kill:x`,
    `${name}=kill,`,
    `${name}=kill;${name}=throw`,
  ]) {
    assert.throws(
      () => read(text),
      (error: unknown) =>
        error instanceof ConfigError &&
        error.message.includes("LATCHKEY_FAILPOINTS") &&
        error.message.includes(name),
      text,
    );
  }
});
