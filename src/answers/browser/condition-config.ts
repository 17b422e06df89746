import type { LocatorConfig } from "./locator.ts";

/** A statement about the page. */
export interface ConditionConfig {
  readonly visible?: LocatorConfig;
  readonly hidden?: LocatorConfig;
  readonly enabled?: LocatorConfig;
  readonly disabled?: LocatorConfig;
  readonly url?: string;
  readonly text?: string;
}
