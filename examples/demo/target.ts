import { CommandFailed } from "#cli/output.ts";

/** The portal's internal state at `/__control`: the requests that it has received and its data, which only the target can know. */
export interface TargetState {
  readonly addresses: { readonly portal: string; readonly ledger: string };
  /** By route and status: how many requests. */
  readonly answered: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly orders: readonly {
    readonly id: string;
    readonly article: string;
    readonly quantity: number;
    readonly unit_price: number;
  }[];
  readonly duplicates_refused: number;
  readonly documents: readonly { readonly id: string; readonly bytes: number; readonly sha256: string }[];
  readonly pickups: readonly { readonly id: string; readonly shipment: string; readonly day: string }[];
  readonly tokens: Readonly<Record<"codes" | "exchanged" | "refreshed" | "forgotten" | "reused", number>>;
  readonly sign_ins: Readonly<Record<string, { readonly wrong_tries: number; readonly locked: boolean }>>;
  readonly faults: readonly { readonly kind: string; readonly struck: number }[];
}

export interface Switches {
  readonly seed?: number;
  readonly faults?: readonly {
    readonly kind: "limit" | "unavailable" | "slow" | "lost_answer";
    readonly path: string;
    readonly count?: number;
    readonly probability?: number;
    readonly seconds?: number;
  }[];
  readonly access_token_uses?: number;
}

export async function readTarget(portalUrl: string): Promise<TargetState> {
  return await control(portalUrl, {});
}

/** Sets the portal's fault switches; omitted ones are off. */
export async function switchTarget(portalUrl: string, switches: Switches): Promise<void> {
  await control(portalUrl, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(switches),
  });
}

async function control(portalUrl: string, init: RequestInit): Promise<TargetState> {
  const response = await fetch(`${portalUrl}/__control`, init);
  if (!response.ok)
    throw new CommandFailed(`The portal's switches answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as TargetState;
}
