import { randomUUID } from "node:crypto";

/** What Ledgerly can be connected to, and what it can fetch there. */
export interface Integration {
  readonly strategyId: string;
  readonly name: string;
  readonly fetches: readonly {
    readonly blueprint: string;
    readonly name: string;
    /** The values of the trigger, besides the credential. */
    readonly body: Readonly<Record<string, unknown>>;
  }[];
}

export const INTEGRATIONS: readonly Integration[] = [
  {
    strategyId: "strat_northwind_portal",
    name: "Northwind Supplier Portal",
    fetches: [
      {
        blueprint: "supplier-invoices",
        name: "All invoices",
        body: { purchase_order: "PO-2026-117", period: { from: "2019-01-01" } },
      },
      { blueprint: "invoice-table", name: "Open invoices", body: { page: "1" } },
    ],
  },
];

/** A customer's login at a third party, as far as Ledgerly knows it: an id. */
export interface Connection {
  readonly id: string;
  readonly integration: Integration;
  /** Null while the end user is away to connect it. */
  credentialId: string | null;
  readonly sessionId: string;
  /** How it is connected: on Latchkey's own page, or in a frame of ours. */
  readonly by: "hosted" | "embedded";
}

export interface Fetch {
  readonly runId: string;
  readonly name: string;
  readonly connection: Connection;
}

/** What Ledgerly keeps; in memory here, in its own database in a real one. Credential ids and run ids, and no secret. */
export interface Book {
  readonly connections: Map<string, Connection>;
  readonly fetches: Map<string, Fetch>;
}

export const openBook = (): Book => ({ connections: new Map(), fetches: new Map() });

export const newId = (): string => randomUUID();
