import { readFile } from "node:fs/promises";
import { FENCES, LAYERS, ROOMS, type Layer } from "../layers.ts";
import { fenceRule } from "../lint-config.ts";

const START = "<!-- layers:start -->";
const END = "<!-- layers:end -->";

const layers: readonly Layer[] = LAYERS;

function reaches(from: string, to: string): boolean {
  const direct = layers.find((layer) => layer.folder === from)?.mayImport ?? [];
  return direct.includes(to) || direct.some((next) => reaches(next, to));
}

/** The edges that no longer path says already: 32 lines instead of 80. The table below it is complete. */
function edges(layer: Layer): string[] {
  return layer.mayImport.filter((to) => !layer.mayImport.some((via) => via !== to && reaches(via, to)));
}

function diagram(): string {
  const lines = layers.filter((layer) => edges(layer).length > 0);
  return [
    "```mermaid",
    "graph TD",
    ...lines.map((layer) => `  ${layer.folder} --> ${edges(layer).join(" & ")}`),
    "```",
  ].join("\n");
}

const NAME_WIDTH = 18;

/** The folders of `src/` and the rooms inside them, each with what lives there. */
function rooms(): string {
  const line = (indent: string, name: string, holds: string): string =>
    `${`${indent}${name}/`.padEnd(NAME_WIDTH)}${holds.replaceAll("`", "")}`;
  return [
    "```",
    "src/",
    ...LAYERS.flatMap(({ folder, holds }) => [
      line("  ", folder, holds),
      ...Object.entries(ROOMS[folder] ?? {}).map(([room, inside]) => line("    ", room, inside)),
    ]),
    "```",
  ].join("\n");
}

function table(): string {
  const rows = layers.map(({ folder, mayImport }) => {
    return `| \`${folder}/\` | ${mayImport.length === 0 ? "–" : mayImport.join(", ")} |`;
  });
  return ["| folder | may import |", "|---|---|", ...rows].join("\n");
}

function fences(): string {
  return FENCES.map((fence) => `- **${fence.what}** ${fenceRule(fence)}`).join("\n");
}

/** The text between the markers: rooms, picture, table, fences. */
function layersBlock(): string {
  const note = "<!-- Written by `npm run generate` from scripts/layers.ts. -->";
  return [START, note, "", rooms(), "", diagram(), "", table(), "", fences(), "", END].join("\n");
}

/** ARCHITECTURE.md with its block renewed; undefined while the file or its markers are missing. */
export async function architecturePage(root: URL): Promise<string | undefined> {
  const text = await readFile(new URL("ARCHITECTURE.md", root), "utf8").catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw error;
    },
  );
  const [start, end] = [text.indexOf(START), text.indexOf(END)];
  if (start < 0 || end < start) return undefined;
  return text.slice(0, start) + layersBlock() + text.slice(end + END.length);
}
