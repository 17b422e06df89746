import type { StepBrowser } from "#answers/browser/step-browser.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Lease } from "#db/runs/lease.ts";
import { deleteLivePicture, listWatchedRuns, saveLivePicture } from "#db/runs/live-pictures.ts";
import { describeError, type Log } from "#lib/log.ts";

/** The browser of a node, while its steps are done. */
interface LiveView {
  readonly lease: Lease;
  readonly browser: Pick<StepBrowser, "picture">;
  /** Whether a picture of it may be stored. */
  isShown: boolean;
  isBusy: boolean;
  /** A picture that is just being stored. */
  saving: Promise<void>;
}

/**
 * The browsers of nodes that this process has open, of which operators may see a picture a second. Browsers of logins are never among
 * them. No step waits for a picture. Failures are only logged: the run does not depend on it.
 */
export class LiveViews {
  readonly #db: Database;
  readonly #log: Log;
  readonly #open = new Set<LiveView>();

  constructor({ db, log }: { readonly db: Database; readonly log: Log }) {
    this.#db = db;
    this.#log = log;
  }

  /** Executes `work`, which does the steps of a node in this browser, and removes the picture at its end. */
  async during<T>(lease: Lease, browser: LiveView["browser"], work: () => Promise<T>): Promise<T> {
    const view: LiveView = {
      lease,
      browser,
      isShown: false,
      isBusy: false,
      saving: Promise.resolve(),
    };
    this.#open.add(view);
    try {
      return await work();
    } finally {
      this.#open.delete(view);
      await this.#forget(view);
    }
  }

  /** Takes a picture of each page that somebody watches. One statement for all; none while no node has a browser. */
  async look(): Promise<void> {
    if (this.#open.size === 0) return;
    const watched = await listWatchedRuns(
      this.#db,
      [...this.#open].map(({ lease }) => lease.runId),
    );
    for (const view of this.#open) {
      if (!watched.includes(view.lease.runId)) await this.#forget(view);
      // A page that does not answer delays no other one.
      else if (!view.isBusy) void this.#show(view);
    }
  }

  async #show(view: LiveView): Promise<void> {
    const { lease, browser } = view;
    view.isBusy = true;
    // The driver's errors may have what was typed.
    const taken = await browser.picture().catch(() => null);
    // Its steps may have ended in the meantime.
    if (taken !== null && this.#open.has(view)) {
      view.isShown = true;
      view.saving = this.#logged(async () => await saveLivePicture(this.#db, lease, taken.step, taken.png));
      await view.saving;
    }
    view.isBusy = false;
  }

  async #forget(view: LiveView): Promise<void> {
    if (!view.isShown) return;
    view.isShown = false;
    await view.saving;
    await this.#logged(async () => await deleteLivePicture(this.#db, view.lease.runId));
  }

  async #logged(work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => {
      this.#log.debug(describeError(error), "showing a run's page failed; the run goes on");
    });
  }
}
