import { homedir } from "node:os";

/** As a user without a home has it. Nothing is looked for or written there. */
export const NO_HOME = "/nonexistent";

/** A uid without a name, as containers may run with, has none: packages that ask for it when they are loaded would fail. */
export function hasHome(): boolean {
  try {
    return homedir() !== "";
  } catch {
    return false;
  }
}
