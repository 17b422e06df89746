import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Found } from "./planted.ts";
import { PLANTS } from "./plants.ts";

const PAGE = join(import.meta.dirname, "../../docs/simulator.md");
const BEGIN = "<!-- planted:start -->";
const END = "<!-- planted:end -->";
const HEAD = "| defect | | seeds | of its scenario | oracle |\n|---|---|---:|---|---|";

/** Writes what was found into the page's table; rows of defects that were not tried stay as they are. */
export function writeTable(found: readonly Found[]): void {
  const page = readFileSync(PAGE, "utf8");
  const [before, rest] = split(page, BEGIN);
  const [table, after] = split(rest, END);
  const rows = new Map(table.split("\n").map((line) => [line.split("|")[1]?.trim() ?? "", line]));
  for (const each of found) rows.set(each.plant.name, rowOf(each));
  const shown = PLANTS.flatMap(({ name }) => rows.get(name) ?? []);
  writeFileSync(PAGE, `${before}${BEGIN}\n${[HEAD, ...shown].join("\n")}\n${END}${after}`);
}

function rowOf({ plant, seeds, tried, oracle }: Found): string {
  const of = plant.scenario === undefined ? "" : `${tried} of \`${plant.scenario}\``;
  const cells = [plant.name, plant.what, seeds === null ? "not found" : String(seeds), of, oracle];
  return `| ${cells.join(" | ")} |`;
}

function split(text: string, mark: string): readonly [before: string, after: string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error(`${PAGE} has no ${mark}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
