import { after } from "node:test";

let isShared = false;
const ends: (() => Promise<unknown>)[] = [];

/** Called before the first of several files runs in this process. */
export function shareProcess(): void {
  isShared = true;
  after(async () => {
    for (const end of ends) await end();
  });
}

/** Whether what one file opens may serve the next one too. */
export const isProcessShared = (): boolean => isShared;

/** Runs after the last file of a shared process. */
export const atProcessEnd = (end: () => Promise<unknown>): void => void ends.push(end);
