import { assert } from "./assert.ts";

/**
 * Counters and histograms of this process, in Prometheus' text format 0.0.4. There is one set for each process, like the log: what is
 * counted is the process's work, whichever part does it. A label's values come from closed lists or from the program's own routes, never
 * from callers; a set that grows nevertheless stops at `SERIES_MAX` and counts the rest under `other`.
 */
const SERIES_MAX = 1_000;
const OTHER = "other";

type Labels<Name extends string> = Readonly<Record<Name, string>>;

interface Instrument {
  readonly name: string;
  lines(): readonly string[];
}

const instruments: Instrument[] = [];

/** All counters and histograms of this process, as text. */
export const renderInstruments = (): string => instruments.flatMap((each) => each.lines()).join("\n");

export interface Counter<Name extends string> {
  add(labels: Labels<Name>, count?: number): void;
}

export interface Histogram<Name extends string> {
  observe(labels: Labels<Name>, value: number): void;
}

/** A number that only grows. */
function counter<const Name extends string>(
  name: string,
  help: string,
  labelNames: readonly Name[],
): Counter<Name> {
  const series = new Series<{ count: number }>(labelNames.length, () => ({ count: 0 }));
  instruments.push({
    name,
    lines: () => [
      ...head(name, help, "counter"),
      ...series.all().map(([values, { count }]) => line(name, zip(labelNames, values), count)),
    ],
  });
  return {
    add: (labels, count = 1) => {
      series.of(labelNames.map((each) => labels[each])).count += count;
    },
  };
}

/** Durations by buckets, in seconds. */
function histogram<const Name extends string>(
  name: string,
  help: string,
  labelNames: readonly Name[],
  buckets: readonly number[],
): Histogram<Name> {
  const series = new Series(labelNames.length, () => ({ counts: buckets.map(() => 0), sum: 0, count: 0 }));
  instruments.push({
    name,
    lines: () => [
      ...head(name, help, "histogram"),
      ...series.all().flatMap(([values, { counts, sum, count }]) => {
        const labels = zip(labelNames, values);
        let below = 0;
        return [
          ...buckets.map((bucket, at) =>
            line(`${name}_bucket`, [...labels, ["le", String(bucket)]], (below += counts[at] ?? 0)),
          ),
          line(`${name}_bucket`, [...labels, ["le", "+Inf"]], count),
          line(`${name}_sum`, labels, sum),
          line(`${name}_count`, labels, count),
        ];
      }),
    ],
  });
  return {
    observe: (labels, value) => {
      const found = series.of(labelNames.map((each) => labels[each]));
      const at = buckets.findIndex((bucket) => value <= bucket);
      if (at !== -1) found.counts[at] = (found.counts[at] ?? 0) + 1;
      found.sum += value;
      found.count += 1;
    },
  };
}

/** A number that is read when it is asked for. */
export interface Gauge {
  readonly name: string;
  readonly help: string;
  readonly values: readonly { readonly labels?: Readonly<Record<string, string>>; readonly value: number }[];
}

export const renderGauges = (gauges: readonly Gauge[]): string =>
  gauges
    .flatMap(({ name, help, values }) => [
      ...head(name, help, name.endsWith("_total") ? "counter" : "gauge"),
      ...values.map(({ labels = {}, value }) => line(name, Object.entries(labels), value)),
    ])
    .join("\n");

/** Values by the values of their labels. */
class Series<T> {
  readonly #byKey = new Map<string, readonly [readonly string[], T]>();
  readonly #labels: number;
  readonly #create: () => T;

  constructor(labels: number, create: () => T) {
    this.#labels = labels;
    this.#create = create;
  }

  of(values: readonly string[]): T {
    const key = values.join("\0");
    const found = this.#byKey.get(key);
    if (found !== undefined) return found[1];
    if (this.#byKey.size >= SERIES_MAX && values.some((value) => value !== OTHER))
      return this.of(Array.from({ length: this.#labels }, () => OTHER));
    const made = this.#create();
    this.#byKey.set(key, [values, made]);
    return made;
  }

  all(): readonly (readonly [readonly string[], T])[] {
    return [...this.#byKey.values()];
  }
}

const zip = (names: readonly string[], values: readonly string[]): readonly (readonly [string, string])[] =>
  names.map((name, at) => [name, values[at] ?? ""]);

const head = (name: string, help: string, type: string): readonly string[] => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} ${type}`,
];

function line(name: string, labels: readonly (readonly [string, string])[], value: number): string {
  assert(!Number.isNaN(value), `the metric ${name} is a number`);
  const named = labels.map(([label, text]) => `${label}="${escape(text)}"`).join(",");
  return `${name}${named === "" ? "" : `{${named}}`} ${value === Infinity ? "+Inf" : String(value)}`;
}

const escape = (text: string): string =>
  text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

/** What this process counts. docs/metrics.md describes each one. */
export const metrics = {
  httpRequests: histogram(
    "latchkey_http_request_duration_seconds",
    "Time from a request's first byte to the end of its answer, by route and status.",
    ["method", "route", "status"],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
  ),
  runExecutions: counter(
    "latchkey_run_executions_total",
    "Executions of runs by this process, by how they ended.",
    ["outcome"],
  ),
  runsCompleted: counter("latchkey_runs_completed_total", "Runs that this process completed.", []),
  runsFailed: counter("latchkey_runs_failed_total", "Runs that failed in this process, by kind of failure.", [
    "kind",
  ]),
  logins: counter("latchkey_logins_total", "Logins of runs, by result; reused cached logins are `ok`.", [
    "result",
  ]),
  outboundRequests: counter(
    "latchkey_outbound_requests_total",
    "Requests to other systems through the egress gate, by result.",
    ["result"],
  ),
  webhookAttempts: counter(
    "latchkey_webhook_attempts_total",
    "Attempts of this process to deliver an event to a webhook endpoint, by result.",
    ["result"],
  ),
  takenOver: counter("latchkey_runs_taken_over_total", "Runs taken over from dead workers.", []),
  storeFailures: counter(
    "latchkey_store_failures_total",
    "Executions of runs that the object store interrupted.",
    [],
  ),
  fullDisks: counter("latchkey_disk_full_total", "Writes of this process that found no room on a disk.", [
    "place",
  ]),
  purged: counter("latchkey_runs_purged_total", "Runs whose data was purged after their retention.", []),
} as const;
