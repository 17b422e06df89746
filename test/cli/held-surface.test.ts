// docs/decisions/0032: commands, options, exit codes, routes and settings that scripts use keep their names.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Composition } from "#cli/composition.ts";
import { buildProgram } from "#cli/program.ts";
import { foreignEnvironment, runCommand } from "../service-process.ts";
import {
  answerFields,
  answersOf,
  expectHeld,
  listCommands,
  programSurface,
  readHeldSurface,
} from "./held-surface.ts";

const page = readFileSync(new URL("../../docs/decisions/0032-the-held-surface.md", import.meta.url), "utf8");
const held = readHeldSurface();

test("the program has the commands, options, exit codes, routes and settings of the list, and no others", async () => {
  expectHeld(
    await programSurface(),
    held.filter((line) => !line.startsWith("json ")),
  );
});

test("commands that print what the operator API answers have the fields of the list", () => {
  expectHeld(answerFields(), held.filter(answersOf));
});

test("a name that goes away, and one that is new, are told with what to do", () => {
  const [first = ""] = held;
  assert.throws(
    () => expectHeld(held.slice(1), held),
    (error: Error) => error.message.includes(`- ${first}`) && /CHANGELOG/.test(error.message),
  );
  assert.throws(() => expectHeld([...held, "command novel"], held), /\+ command novel/);
});

test("the record's table names every command, and the list has the fields of each `--json`", async () => {
  const commands = await listCommands();
  const listed = [...page.matchAll(/^\| `([a-z -]+)` \|/gm)].map(([, command]) => command);
  assert.deepEqual(new Set(listed), new Set(commands.map(([name]) => name)));
  const printing = commands.filter(([, { options }]) => options.some(({ long }) => long === "--json"));
  const missing = printing.filter(([name]) => !held.some((line) => line.startsWith(`json ${name} `)));
  assert.deepEqual(
    missing.map(([name]) => name),
    [],
  );
});

test("no option of a command has the name of one of all commands, which would take its value", async () => {
  const ofAll = (await buildProgram({} as Composition)).options.map(({ long }) => long);
  assert.ok(ofAll.includes("--url"));
  for (const [name, { options }] of await listCommands())
    for (const { long } of options) assert.ok(!ofAll.includes(long), `${name} ${long}`);
});

test("each command is built alone by its name, as `--help` lists it among all", async () => {
  const composition = {} as Composition;
  for (const command of (await buildProgram(composition)).commands) {
    const alone = await buildProgram(composition, command.name());
    assert.deepEqual(
      alone.commands.map((each) => each.helpInformation()),
      [command.helpInformation()],
    );
  }
});

test("a wrong command line ends with exit code 2", async () => {
  for (const wrong of [["no-such-command"], ["keys", "list", "--no-such-option"]])
    assert.equal((await runCommand(wrong, foreignEnvironment())).code, 2, wrong.join(" "));
});
