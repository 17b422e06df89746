import { openDoor, type Door } from "./door.ts";
import { redactorOf, type Redactor } from "./redact.ts";
import type { RunSecret, RunSecrets } from "./run-secrets.ts";

/**
 * Both nets for what a target shows to people alone, such as the message of a failed login, or a page of a browser: unlike a node's
 * data, it has not passed the door on its way.
 */
export interface BothNets {
  message(text: string): string;
  /** Adds secrets that were received in the meantime. */
  add(secrets: readonly RunSecret[]): void;
}

export const bothNets = (door: Door, redact: Redactor): BothNets => ({
  message: (text) => redact.message(door.message(text)),
  add: (secrets) => redact.add(secrets),
});

export const openBothNets = (secrets: RunSecrets): BothNets => ({
  ...bothNets(openDoor(secrets, null), redactorOf(secrets)),
  add: (more) => secrets.add(more),
});
