import { contentOf, exportResults, findResult, type ExportFormat } from "#actions/runs/export-results.ts";
import type { Needs } from "#actions/services.ts";
import { limits } from "#domain/limits.ts";
import { splitJsonItems } from "#lib/split-json-items.ts";

type Stored = Needs<"db" | "blobs">;

/** A record as results show it. */
interface StoredRecord {
  readonly data: unknown;
  readonly errors: unknown[];
  readonly isValid: boolean;
}

/**
 * Some records from an ordinal on. Earlier records are read but not parsed. Stops when the caller is gone. Throws OperatorError.
 */
export async function getResult(
  { db, blobs }: Stored,
  named: { readonly run: string; readonly key: string },
  query: { from?: number; limit?: number; invalid?: boolean },
  gone: AbortSignal,
) {
  const { run, result } = await findResult(db, named);
  if (query.invalid === true) {
    const content = splitJsonItems(contentOf(blobs, result, run.id));
    return { total_records: result.totalRecords, ...(await invalidOnes(content, query, gone)) };
  }
  const from = query.from ?? 0;
  const end = from + (query.limit ?? limits.pageItems);
  const items = [];
  let ordinal = 0;
  for await (const batch of splitJsonItems(contentOf(blobs, result, run.id))) {
    for (const item of batch.slice(Math.max(from - ordinal, 0), Math.max(end - ordinal, 0))) {
      // In the form that this service wrote.
      const { data, errors, isValid } = JSON.parse(item.toString("utf8")) as StoredRecord;
      items.push({ ordinal: from + items.length, data, errors, is_valid: isValid });
    }
    ordinal += batch.length;
    if (ordinal >= end || gone.aborted) break;
  }
  return { total_records: result.totalRecords, invalid_records: null, items };
}

/** In every record with errors, and in few others: only these are parsed. */
const MARK = Buffer.from('"isValid":false');

/** A page of the records with errors, and how many there are: all records are read for it. */
async function invalidOnes(
  content: AsyncIterable<readonly Buffer[]>,
  query: { from?: number; limit?: number },
  gone: AbortSignal,
) {
  const from = query.from ?? 0;
  const end = from + (query.limit ?? limits.pageItems);
  const items = [];
  let [ordinal, found] = [0, 0];
  for await (const batch of content) {
    for (const item of batch) {
      if (item.includes(MARK)) {
        const { data, errors, isValid } = JSON.parse(item.toString("utf8")) as StoredRecord;
        if (!isValid && found >= from && found < end) items.push({ ordinal, data, errors, is_valid: false });
        if (!isValid) found++;
      }
      ordinal++;
    }
    if (gone.aborted) break;
  }
  return { invalid_records: found, items };
}

/** Throws OperatorError. */
export async function downloadResult(
  { db, blobs }: Stored,
  named: { readonly run: string; readonly key: string },
  query: { format: ExportFormat; bom?: boolean },
) {
  return await exportResults({ db, blobs }, { ...named, format: query.format, bom: query.bom ?? false });
}
