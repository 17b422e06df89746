import type { Locator, Page } from "playwright-core";
import type { ConditionConfig } from "./condition-config.ts";
import type { StepFailure } from "./step-failure.ts";

/** Requests of the page that the egress rules refused. */
export interface RefusedRequest {
  readonly origin: string;
  readonly count: number;
}

/** A browser of one run with one page, as steps see it. The engine opens it, behind the egress gate. */
export interface StepBrowser {
  readonly page: Page;
  /** The origins that the page may show. A relative URL is resolved against the first one. */
  readonly origins: readonly string[];
  /**
   * Sets a value that may be secret: never by the driver's own `fill`, whose errors have the value. Throws StepFailure if the field
   * is not one that may receive it.
   */
  enterSecret(field: Locator, value: string, how: "fill" | "type", timeoutMs: number): Promise<void>;
  refused(): readonly RefusedRequest[];
  /** What the page shows when the session has ended; null: it is not known. */
  readonly expired: ConditionConfig | null;
  /** Why the browser ended before it was closed; null: it did not. */
  ended(): StepFailure | null;
}
