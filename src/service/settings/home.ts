import { homedir } from "node:os";

/** The home folder of users that have none. Nothing is read or written there. */
export const NO_HOME = "/nonexistent";

/** A uid without a user name, as in some containers, has no home folder, and packages that read it when they are loaded would fail. */
export function hasHome(): boolean {
  try {
    return homedir() !== "";
  } catch {
    return false;
  }
}
