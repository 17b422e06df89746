import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { unpackDebian, type WantedPackages } from "../debian-packages.ts";
import { freePort } from "../free-port.ts";
import { until } from "../eventually.ts";
import { untilListening } from "../http/start-proxy.ts";

export const PROMETHEUS: WantedPackages = {
  name: "prometheus",
  what: "Prometheus",
  from: [{ suite: "own", packages: ["prometheus"], withDependencies: false }],
  instead: "Leave this test out.",
};

export interface Prometheus extends AsyncDisposable {
  /** An instant query's series: labels and value. */
  query(
    expression: string,
  ): Promise<readonly { readonly metric: Readonly<Record<string, string>>; readonly value: number }[]>;
  /** Of the scraped target: `up`, `down` or `unknown`, and what was wrong. */
  health(): Promise<{ readonly health: string; readonly lastError: string }>;
  /** Names of rules with their health: `ok` once they were evaluated without an error. */
  rules(): Promise<ReadonlyMap<string, string>>;
}

interface QueryResult {
  readonly result: readonly {
    readonly metric: Readonly<Record<string, string>>;
    /** Time and number. */
    readonly value: readonly [number, string];
  }[];
}

interface Targets {
  readonly activeTargets: readonly { readonly health: string; readonly lastError: string }[];
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly name: string; readonly health: string }[];
  }[];
}

/** Debian's Prometheus, which scrapes this port each second as the job `latchkey`, with the rules of deploy/prometheus. */
export async function startPrometheus(scrapedPort: string): Promise<Prometheus> {
  const root = await unpackDebian(PROMETHEUS);
  const folder = mkdtempSync(join(tmpdir(), "latchkey-prometheus-"));
  const port = await freePort();
  const config = join(folder, "prometheus.yml");
  const rules = resolve(import.meta.dirname, "../../deploy/prometheus/rules.yaml");
  writeFileSync(
    config,
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [${rules}]
scrape_configs:
  - job_name: latchkey
    static_configs: [{ targets: ["127.0.0.1:${scrapedPort}"] }]
`,
  );
  const child = spawn(
    join(root, "usr/bin/prometheus"),
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ["ignore", "ignore", "pipe"], env: { HOME: folder, GOMAXPROCS: "1" } },
  );
  const listening = await untilListening({ name: "Prometheus", child, port, folder });
  // It answers 503 until it has read its storage.
  await until("Prometheus is ready", async () => (await fetch(`http://127.0.0.1:${port}/-/ready`)).ok);
  const ask = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    return ((await answer.json()) as { readonly data: T }).data;
  };
  return {
    query: async (expression) => {
      const { result } = await ask<QueryResult>(`query?query=${encodeURIComponent(expression)}`);
      return result.map(({ metric, value: [, value] }) => ({ metric, value: Number(value) }));
    },
    health: async () =>
      (await ask<Targets>("targets")).activeTargets[0] ?? { health: "unknown", lastError: "" },
    rules: async () => {
      const { groups } = await ask<Rules>("rules");
      return new Map(groups.flatMap((group) => group.rules.map(({ name, health }) => [name, health])));
    },
    [Symbol.asyncDispose]: async () => await listening[Symbol.asyncDispose](),
  };
}
