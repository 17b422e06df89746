import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

test("the worked example of docs/security.md prints what the page says", () => {
  const root = join(import.meta.dirname, "../..");
  const page = readFileSync(join(root, "docs/security.md"), "utf8");
  const code = /```js\n([\s\S]*?)```/.exec(page)?.[1] ?? assert.fail("no example");
  const output = execFileSync(process.execPath, ["--input-type=module", "--eval", code], { cwd: root });
  const said = [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, text]) => text);
  assert.equal(said.length, 2);
  assert.deepEqual(output.toString("utf8").trim().split("\n"), said);
  const vectors = JSON.parse(readFileSync(join(root, "test/vault/vectors.json"), "utf8"));
  const aad = Buffer.from(JSON.parse(vectors.opens[0].sealed).aad, "base64url").toString("hex");
  const shown = /begins, in hexadecimal, `([^`]+)` \(.*?\), `([^`]+)`/.exec(page);
  assert.ok(aad.startsWith(`${shown?.[1]}${shown?.[2]}`.replaceAll(" ", "")));
});
