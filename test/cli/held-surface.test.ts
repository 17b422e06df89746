// docs/decisions/0032: commands, options and `--json` that scripts use keep their names.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { foreignEnvironment, runCommand } from "../service-process.ts";

const page = readFileSync(new URL("../../docs/decisions/0032-the-held-surface.md", import.meta.url), "utf8");
const rows = [...page.matchAll(/^\| `([a-z -]+)` \|(.*)\|$/gm)].map(([, command = "", cells = ""]) => {
  const [options = "", prints = ""] = cells.split("|");
  return {
    command: command.split(" "),
    options: [...options.matchAll(/--[a-z-]+/g)].map(([option]) => option),
    isJson: prints.trim() !== "" && !prints.includes("exit code"),
  };
});

test("every command of the held surface is there, with the options that scripts use", async () => {
  assert.ok(rows.length >= 45, `${rows.length} rows`);
  for (const { command, options, isJson } of rows) {
    const { code, stdout } = await runCommand([...command, "--help"], foreignEnvironment());
    const name = command.join(" ");
    assert.equal(code, 0, name);
    assert.ok(stdout.startsWith(`Usage: latchkey ${name}`), name);
    const has = (option: string): boolean => new RegExp(`^ +(?:-\\w, )?${option}\\b`, "m").test(stdout);
    const missing = [...options, ...(isJson ? ["--json"] : [])].filter((option) => !has(option));
    assert.deepEqual(missing, [], name);
  }
});

test("a wrong command line ends with exit code 2", async () => {
  for (const wrong of [["no-such-command"], ["keys", "list", "--no-such-option"]])
    assert.equal((await runCommand(wrong, foreignEnvironment())).code, 2, wrong.join(" "));
});
