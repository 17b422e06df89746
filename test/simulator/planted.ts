import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { testServerUrl } from "../database.ts";
import { PLANTS, type Edit, type Plant } from "./plants.ts";

const PROJECT = resolve(import.meta.dirname, "../..");
/** What the simulator needs of the project. */
const COPIED = ["src", "test", "scripts", "spec", "package.json"];

/** Seeds of one plant, or what else became of it. */
export interface Found {
  readonly plant: Plant;
  /** How many seeds it took; null: none of them found it. */
  readonly seeds: number | null;
  /** How many of the seeds were of the plant's scenario. */
  readonly tried: number;
  /** What found it. */
  readonly oracle: string;
  readonly said: string;
}

/** Plants a defect into a copy of the program and simulates it there, seed by seed from `first`, until one finds it. */
export async function findPlanted(plant: Plant, first: number, seedsMax: number): Promise<Found> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-planted-"));
  try {
    for (const name of COPIED) cpSync(join(PROJECT, name), join(folder, name), { recursive: true });
    symlinkSync(join(PROJECT, "node_modules"), join(folder, "node_modules"));
    for (const edit of plant.edits) apply(folder, edit);
    const seeds = ["--seed", String(first), "--seeds", String(seedsMax), "--first", "--jobs", "1"];
    const said = await run(folder, [...seeds, ...(plant.scenario ? ["--scenario", plant.scenario] : [])]);
    const [, count, tried = count] = /^(\d+) seeds from \d+(?:, (\d+) of them)?/m.exec(said) ?? [];
    if (count === undefined) throw new Error(`${plant.name}: the simulator ended by itself:\n${said}`);
    const [, oracle = ""] = / breaks "([^"]*)"/.exec(said) ?? [];
    return {
      plant,
      seeds: / failed: /.test(said) ? Number(count) : null,
      tried: Number(tried),
      oracle,
      said,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Those that are named; without a name all. */
export function plantsNamed(names: readonly string[]): readonly Plant[] {
  const unknown = names.find((name) => !PLANTS.some((plant) => plant.name === name));
  if (unknown !== undefined)
    throw new Error(`No plant is named ${unknown}. There are: ${PLANTS.map(({ name }) => name).join(", ")}`);
  return names.length === 0 ? PLANTS : PLANTS.filter(({ name }) => names.includes(name));
}

function apply(folder: string, { file, find, put }: Edit): void {
  const path = join(folder, file);
  const text = readFileSync(path, "utf8");
  const parts = text.split(find);
  if (parts.length !== 2)
    throw new Error(`${file} has this ${parts.length - 1} times, and not once. Change the plant:\n${find}`);
  writeFileSync(path, parts.join(put));
}

/** Whether each of them can be planted. Throws what cannot. */
export function checkPlants(): void {
  for (const { edits } of PLANTS)
    for (const { file, find } of edits) {
      const count = readFileSync(join(PROJECT, file), "utf8").split(find).length - 1;
      if (count !== 1)
        throw new Error(`${file} has this ${count} times, and not once. Change the plant:\n${find}`);
    }
}

async function run(folder: string, options: readonly string[]): Promise<string> {
  const program = join(folder, "test/simulator/main.ts");
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", program, ...options], {
    env: { ...process.env, LATCHKEY_TEST_DATABASE: await testServerUrl() },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")));
  await new Promise((done) => child.once("close", done));
  return said;
}
