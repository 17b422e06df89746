import type { Needs } from "#actions/services.ts";
import { deletePurgedTexts, insertRunTexts, listUnsearched, noteSearched } from "#db/operators/run-search.ts";
import { gramsOf, searchText } from "#domain/search-text.ts";

const RUNS_MAX = 500;

/**
 * Makes the runs that were triggered since the last call findable by their names and metadata; `sinceMs` is the last call's answer.
 * Outside the triggers' transactions, which would take longer otherwise. Concurrent calls do the same work once or twice, with the
 * same outcome.
 */
export async function indexRuns({ db }: Needs<"db">, sinceMs: number | null): Promise<number> {
  for (let fromMs = sinceMs; ;) {
    const runs = await listUnsearched(db, fromMs, RUNS_MAX);
    const ids = runs.map(({ id }) => id);
    if (runs.length > 0) {
      await insertRunTexts(
        db,
        runs.map(({ id, name, metadata }) => {
          const values = JSON.parse(metadata.toString("utf8")) as Record<string, string>;
          const text = searchText(name?.toString("utf8") ?? null, values);
          return { id, text, grams: gramsOf(text) };
        }),
      );
      await deletePurgedTexts(db, ids);
    }
    fromMs = await noteSearched(db, runs.length === RUNS_MAX ? (ids.at(-1) ?? null) : null, runs.length > 0);
    if (runs.length < RUNS_MAX) return fromMs;
  }
}
