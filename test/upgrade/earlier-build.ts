import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ServiceProgram } from "../service-process.ts";

const PROJECT = resolve(import.meta.dirname, "../..");
const MIGRATIONS = "src/db/migrations";

/**
 * The last migration of the version that a rolling upgrade may begin with: it serves beside this one while this one's migrations are
 * applied. A release sets it to its own.
 */
export const EARLIER = "0088_schedules.sql";

export interface EarlierBuild extends Disposable {
  readonly program: ServiceProgram;
  readonly commit: string;
}

/** The last commit with that migration as the newest one; null: this is no clone with its history. */
export function findEarlierCommit(last = EARLIER): string | null {
  try {
    const commits = git("rev-list", "HEAD", "--", MIGRATIONS).split("\n");
    // The first one after it has its own, so the state before that one is wanted.
    const after = commits.findLastIndex((commit) => newest(commit) > last);
    const commit = git("rev-parse", `${commits[after] ?? ""}^`);
    return newest(commit) === last ? commit : null;
  } catch {
    return null;
  }
}

const git = (...words: string[]): string =>
  execFileSync("git", words, { cwd: PROJECT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();

const newest = (commit: string): string =>
  git("ls-tree", "--name-only", commit, `${MIGRATIONS}/`)
    .split("\n")
    .map((path) => path.slice(MIGRATIONS.length + 1))
    .filter((name) => /^\d{4}_/.test(name))
    .at(-1) ?? "";

/** That commit's program, with this checkout's packages: it has what the program needed then, or newer. */
export function openEarlierBuild(commit: string): EarlierBuild {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-earlier-"));
  const unpack = 'git archive "$1" . ":!test" ":!docs/screenshots" | tar -x -C "$2"';
  execFileSync("sh", ["-c", unpack, "sh", commit, folder], { cwd: PROJECT });
  symlinkSync(realpathSync(join(PROJECT, "node_modules")), join(folder, "node_modules"));
  return {
    commit,
    program: { node: process.execPath, flags: [], main: join(folder, "src/main.mjs") },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
