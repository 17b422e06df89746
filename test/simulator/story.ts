import type { Simulated } from "./simulate.ts";
import type { StoryLine } from "./world.ts";

const LINES_MAX = 60;

const lineOf = ({ atMs, who, what }: StoryLine): string =>
  `  ${(atMs / 1_000).toFixed(3).padStart(9)} s  ${who.padEnd(9)} ${what}`;

/** Who did what, in virtual time: all faults, and what concerns the runs of the violation; without such a run, what came last. */
export function storyOf({ seed, violation, story, faults }: Simulated): string {
  if (violation === null) return `seed ${seed}: every oracle held`;
  const concerned = violation.what.match(/run_[0-9A-Za-z]+|order-\d+/g) ?? [];
  const isFault = ({ who }: StoryLine): boolean => who === "fault";
  const speaksOf = ({ what }: StoryLine): boolean => concerned.some((each) => what.includes(each));
  const told = concerned.length === 0 ? story : story.filter((line) => isFault(line) || speaksOf(line));
  const shown = told.slice(-LINES_MAX);
  return [
    `seed ${seed} breaks "${violation.oracle}" after ${(violation.atMs / 1_000).toFixed(3)} s, with ${faults.length} faults:`,
    `  ${violation.what}`,
    ...(told.length > shown.length ? [`  (${told.length - shown.length} lines before)`] : []),
    ...shown.map(lineOf),
    `  again: npm run simulate -- --seed ${seed}`,
  ].join("\n");
}
