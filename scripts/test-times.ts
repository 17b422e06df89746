/**
 * Fails when the last `npm test` had a file that took more CPU time than a file of the fast tier may. Says nothing where no
 * whole run has been made yet.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { keptRunFile, tooSlow, type KeptRun } from "../test/report-run.ts";

const file = keptRunFile(dirname(import.meta.dirname), "fast");
const problems = existsSync(file) ? tooSlow(JSON.parse(readFileSync(file, "utf8")) as KeptRun) : [];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;
