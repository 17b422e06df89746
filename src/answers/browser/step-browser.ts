import type { Locator, Page } from "playwright-core";
import type { NewEvidence } from "#domain/page-evidence.ts";
import type { ConditionConfig } from "./condition-config.ts";
import type { StepFailure } from "./step-failure.ts";

/** Requests of the page that the egress rules refused. */
export interface RefusedRequest {
  readonly origin: string;
  readonly count: number;
}

/** What a page shows at one moment. */
export type PageLook = Omit<NewEvidence, "reason" | "step">;

/** A step that is in progress. */
export interface BegunStep {
  /** Described with the document's text. */
  readonly step: string;
  readonly page: Page;
  /** Whether the page says that the session has ended. */
  isExpired(): Promise<boolean>;
}

/** What a page shows while a step is done in it. */
export interface LivePicture {
  readonly step: string;
  readonly png: Buffer;
}

/** A browser of one run with one page, as steps see it. The engine opens it, behind the egress gate. */
export interface StepBrowser {
  readonly page: Page;
  /** Aborted when the browser must end. */
  readonly signal: AbortSignal;
  /** The origins that the page may show. A relative URL is resolved against the first one. */
  readonly origins: readonly string[];
  /**
   * Sets a value that may be secret: never by the driver's own `fill`, whose errors have the value. Throws StepFailure if the field
   * is not one that may receive it.
   */
  enterSecret(field: Locator, value: string, how: "fill" | "type", timeoutMs: number): Promise<void>;
  refused(): readonly RefusedRequest[];
  /**
   * Removes secrets from a text of the page: to be called before the text is cut, which would leave a part that nothing finds. Null: it
   * is not known what is secret.
   */
  cleaner(): Promise<((text: string) => string) | null>;
  /**
   * What a page shows, without secrets and values of fields. `marked`: the elements that the step is about. Null: the page is gone or
   * does not answer, or it is not known what is secret.
   */
  look(page: Page, marked: Locator | null): Promise<PageLook | null>;
  /** Says that a step begins: of its page there may be live pictures. */
  begin(step: BegunStep): void;
  /**
   * A picture of the page of the current step, covered like that of `look`. Null: `look` would have none, it is the page of a session that
   * has ended, nothing was begun, or the browser is that of a login.
   */
  picture(): Promise<LivePicture | null>;
  /** What the page shows when the session has ended; null: it is not known. */
  readonly expired: ConditionConfig | null;
  /** Why the browser ended before it was closed; null: it did not. */
  ended(): StepFailure | null;
}
