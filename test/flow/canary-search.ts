import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import type { Database } from "#db/connection/pool.ts";

/** A place that was searched, and its bytes. */
export interface Surface {
  readonly place: string;
  readonly bytes: Buffer;
}

/** Where a value was found, and in which form. */
export interface Finding {
  readonly place: string;
  readonly form: string;
}

/** A value in every form in which software writes values down. Forms that are the same bytes count once. */
export function formsOf(value: string | Buffer): ReadonlyMap<string, Buffer> {
  const bytes = Buffer.from(value);
  const forms: Record<string, string | Buffer> = {
    raw: bytes,
    hex: bytes.toString("hex"),
    "upper-case hex": bytes.toString("hex").toUpperCase(),
  };
  for (const offset of [0, 1, 2]) {
    const base64 = base64Within(bytes, offset);
    forms[`base64, offset ${offset}`] = base64;
    forms[`base64url, offset ${offset}`] = base64.replaceAll("+", "-").replaceAll("/", "_");
  }
  if (typeof value === "string") {
    const json = JSON.stringify(value).slice(1, -1);
    forms["JSON"] = json;
    forms["JSON in JSON"] = JSON.stringify(json).slice(1, -1);
    forms["ASCII JSON"] = json.replace(
      /[^\x20-\x7e]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    forms["URL"] = encodeURIComponent(value);
    forms["lower-case URL"] = encodeURIComponent(value).replace(/%../g, (code) => code.toLowerCase());
    forms["form"] = new URLSearchParams([["", value]]).toString().slice(1);
    forms["HTML"] = value.replace(/[&<>"']/g, (character) => HTML[character] ?? character);
  }
  const different = new Map<string, Buffer>();
  for (const [name, form] of Object.entries(forms)) {
    const needle = Buffer.from(form);
    if (![...different.values()].some((other) => other.equals(needle))) different.set(name, needle);
  }
  return different;
}

const HTML: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** The characters that base64 has for these bytes wherever they stand in a longer text (`user:password`). */
function base64Within(bytes: Buffer, offset: number): string {
  const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
  return padded.toString("base64").slice(Math.ceil((offset * 8) / 6), Math.floor((padded.length * 8) / 6));
}

export function search(surfaces: readonly Surface[], forms: ReadonlyMap<string, Buffer>): readonly Finding[] {
  return surfaces.flatMap(({ place, bytes }) =>
    [...forms].flatMap(([form, needle]) => (bytes.includes(needle) ? [{ place, form }] : [])),
  );
}

/** Every column of every table of every schema, the system's own too, value by value; and what the server shows of statements. */
export async function dumpDatabase(db: Database): Promise<readonly Surface[]> {
  const columns = await db.query<{ table: string; column: string; isBytes: boolean }>(
    `select format('%I.%I', nspname, relname) as "table", quote_ident(attname) as "column", atttypid = 'bytea'::regtype as "isBytes"
     from pg_class join pg_namespace on pg_namespace.oid = relnamespace join pg_attribute on attrelid = pg_class.oid
     where relkind in ('r', 'p', 'm') and attnum > 0 and not attisdropped and nspname not like 'pg_toast%' order by 1, attnum`,
  );
  const surfaces: Surface[] = [];
  for (const { table, column, isBytes } of columns) {
    const rows = await db.query<{ value: Buffer | string }>(
      `select ${isBytes ? column : `${column}::text`} as value from ${table} where ${column} is not null`,
    );
    surfaces.push({
      place: `${table}.${column}`,
      bytes: joined(rows.map(({ value }) => Buffer.from(value))),
    });
  }
  const statements = await db.query<{ query: string }>(
    "select query from pg_stat_activity where query is not null",
  );
  surfaces.push({
    place: "pg_stat_activity",
    bytes: joined(statements.map(({ query }) => Buffer.from(query))),
  });
  return surfaces;
}

/** Every file below a folder; a Brotli object also as what is in it. */
export function readFolder(folder: string): readonly Surface[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    if (!entry.isFile()) return [];
    const path = join(entry.parentPath, entry.name);
    const place = `file ${relative(folder, path)}`;
    const bytes = readFileSync(path);
    return path.endsWith(".br")
      ? [
          { place, bytes },
          { place, bytes: brotliDecompressSync(bytes) },
        ]
      : [{ place, bytes }];
  });
}

/** With a byte between them that is part of no needle. */
function joined(values: readonly Buffer[]): Buffer {
  return Buffer.concat(values.flatMap((value) => [value, Buffer.from([0])]));
}

/** Keeps everything that `fetch` receives from now on: status line, headers and body. Gives it, and a way to stop. */
export function recordAnswers(): { readonly answers: Surface[]; stop(): void } {
  const original = globalThis.fetch;
  const answers: Surface[] = [];
  globalThis.fetch = async (input, init) => {
    const response = await original(input, init);
    const body = Buffer.from(await response.clone().arrayBuffer());
    const place = `answer ${init?.method ?? "GET"} ${new URL(String(input)).pathname}`;
    const head = `${response.status} ${JSON.stringify([...response.headers])}`;
    answers.push({ place, bytes: Buffer.concat([Buffer.from(head), body]) });
    if (place.includes("/downloads/") && response.ok)
      answers.push({ place, bytes: brotliDecompressSync(body) });
    return response;
  };
  return { answers, stop: () => void (globalThis.fetch = original) };
}
