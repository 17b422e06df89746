import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import type { ConfigSource } from "#actions/config/check-sources.ts";
import { CommandFailed } from "./output.ts";

const ENDINGS = new Set([".yaml", ".yml", ".json"]);

/** Reads documents from files and folders (YAML and JSON files at any depth) in a stable order. */
export function readSources(paths: readonly string[]): readonly ConfigSource[] {
  const files = [...new Set(paths.flatMap((path) => filesUnder(path)))];
  const documents = files
    .map((file) => ({ file, text: readFileSync(file, "utf8") }))
    // Recordings that `latchkey run --record` stored next to them.
    .filter(({ text }) => !/^\s*\{\s*"latchkey_recording"/.test(text));
  if (documents.length === 0)
    throw new CommandFailed(
      `No YAML or JSON file ${files.length === 0 ? "" : "but recordings "}under ${paths.join(", ")}.`,
    );
  return documents;
}

function filesUnder(path: string): readonly string[] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new CommandFailed(`${path} does not exist.`);
  if (!found.isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => !entry.name.startsWith(".") && entry.name !== "node_modules")
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const inside = join(path, entry.name);
      if (entry.isDirectory()) return filesUnder(inside);
      return ENDINGS.has(extname(entry.name)) ? [inside] : [];
    });
}
