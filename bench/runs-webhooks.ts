import { measureDrain, type Contender, type DrainTiming } from "./runs-drain.ts";
import { median } from "./runs-latency.ts";
import { renderLines } from "./lines.ts";
import { ourContender, type RunStage } from "./runs-ours.ts";

export interface WebhookOptions extends DrainTiming {
  readonly rounds: number;
  readonly workers: readonly number[];
  readonly targetUrl: string;
}

/** Without an endpoint; with one whose events are written and wait; with one that gets them while the runs go on. */
const KINDS = ["none", "written", "delivered"] as const;
type Kind = (typeof KINDS)[number];

const TITLES: Readonly<Record<Kind, string>> = {
  none: "no endpoint",
  written: "events written",
  delivered: "events delivered, two each",
};

export interface WebhookRow {
  readonly kind: Kind;
  readonly workers: number;
  readonly perSecond: number;
  /** Of the rate without an endpoint, round by round. */
  readonly ratio: number;
}

const GUESS = 500;

/** The rate of the smallest runs, whose events an endpoint gets, in the same rounds as without one. */
export async function measureWebhooks(
  stage: RunStage,
  options: WebhookOptions,
  say: (text: string) => void,
): Promise<readonly WebhookRow[]> {
  const runs = await ourContender(stage, "noop", "webhooks");
  const rows: WebhookRow[] = [];
  for (const workers of options.workers) {
    const rates: Record<Kind, number[]> = { none: [], written: [], delivered: [] };
    for (let round = 0; round < options.rounds; round++) {
      // Each kind is first as often as the others.
      for (const [at] of KINDS.entries()) {
        const kind = KINDS[(at + round) % KINDS.length] ?? "none";
        await prepare(stage, kind, options.targetUrl);
        const { perSecond } = await measureDrain(of(runs, kind), workers, options, GUESS);
        say(`${TITLES[kind]}, ${workers} workers: ${Math.round(perSecond)} runs a second`);
        rates[kind].push(perSecond);
      }
    }
    for (const kind of KINDS) {
      const ratios = rates[kind].map((rate, round) => rate / (rates.none[round] ?? rate));
      rows.push({ kind, workers, perSecond: median(rates[kind]), ratio: median(ratios) });
    }
  }
  await prepare(stage, "none", options.targetUrl);
  return rows;
}

/** Its own name, because each kind drains another backlog. */
const of = (runs: Contender, kind: Kind): Contender => ({ ...runs, id: `${runs.id} ${kind}` });

async function prepare({ installation }: RunStage, kind: Kind, targetUrl: string): Promise<void> {
  const { db } = installation.database;
  for (const table of ["attempt", "delivery", "secret", "endpoint", "event"])
    await db.query({ text: `delete from webhook_${table}`, timeoutMs: 60_000 });
  if (kind === "none") return;
  const words = ["webhooks", "create", `${targetUrl}/hooks`, "--account", "acme"];
  const { code, stderr } = await installation.command(...words);
  if (code !== 0) throw new Error(stderr);
  if (kind === "written") await db.query("delete from webhook_secret");
}

export function renderWebhooks(rows: readonly WebhookRow[], isMarkdown: boolean): string {
  const lines = rows.map(({ kind, workers, perSecond, ratio }) => [
    TITLES[kind],
    String(workers),
    String(Math.round(perSecond)),
    `${Math.round(ratio * 100)} %`,
  ]);
  return renderLines([["runs with", "workers", "runs/s", "of none"], ...lines], isMarkdown);
}
