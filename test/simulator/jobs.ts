import { fork } from "node:child_process";
import { join } from "node:path";
import { testServerUrl } from "../database.ts";
import type { Total } from "./total.ts";

/** Options of jobs that share the seeds from `first` on, one after the other. `seeds`: how many; Infinity: until they end by another option. */
export const optionsOfJobs = ({
  first,
  seeds,
  jobs,
}: {
  readonly first: number;
  readonly seeds: number;
  readonly jobs: number;
}): readonly (readonly string[])[] =>
  Array.from({ length: jobs }, (_, job) => [
    ...["--seed", String(first + job), "--step", String(jobs), "--jobs", "1"],
    ...(Number.isFinite(seeds) ? ["--seeds", String(Math.ceil((seeds - job) / jobs))] : []),
  ]);

/** Seeds are independent: each process has a stage of its own, on one server. Throws when one of them ends by itself. */
export async function simulateSideBySide(options: readonly (readonly string[])[]): Promise<Total> {
  const server = await testServerUrl();
  const totals = await Promise.all(options.map(async (each) => await simulateBeside(server, each)));
  const sum = (of: (total: Total) => number): number => totals.reduce((all, total) => all + of(total), 0);
  return {
    seeds: sum(({ seeds }) => seeds),
    tried: sum(({ tried }) => tried),
    virtualMs: sum(({ virtualMs }) => virtualMs),
    runs: sum(({ runs }) => runs),
    cpuS: sum(({ cpuS }) => cpuS),
    failed: totals.flatMap(({ failed }) => failed),
    odd: totals.flatMap(({ odd }) => odd),
  };
}

async function simulateBeside(server: string, options: readonly string[]): Promise<Total> {
  const child = fork(join(import.meta.dirname, "main.ts"), [...options], {
    env: { ...process.env, LATCHKEY_TEST_DATABASE: server },
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const { promise, resolve, reject } = Promise.withResolvers<Total>();
  child.once("message", (total) => resolve(total as Total));
  child.once("exit", (code) => reject(new Error(`a simulator ended by itself, with ${code}`)));
  return await promise;
}
