import { blueprint } from "./bench.ts";
import type { Target } from "./target.ts";

/** A Blueprint that writes each of its rows to the target's books, with the token by which the target can be asked. */
export const SENDS = blueprint(
  "sends",
  `- { id: rows, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: rows, format: json }
- id: sent
  type: http
  for_each: lines
  request: { method: POST, url: "{TARGET}/orders", json: { run: "{{ $run.id }}", token: "{{ $token }}" } }
  verify: { request: { url: "{TARGET}/orders", query: { token: "{{ $token }}" } }, when: "$count(found) > 0" }
- { id: out, type: output, refKey: out, from: sent }`,
  "hosts: ['{TARGET}']",
);

/** The target's books: how often each run has written. */
export function keepBooks(target: Target): ReadonlyMap<string, number> {
  const books = new Map<string, number>();
  const tokens = new Set<string>();
  target.on("POST /orders", ({ body }) => {
    const { run, token } = JSON.parse(body) as { run: string; token: string };
    books.set(run, (books.get(run) ?? 0) + 1);
    tokens.add(token);
    return { json: {} };
  });
  target.on("GET /orders", ({ query }) => ({
    json: { found: tokens.has(query.get("token") ?? "") ? [{}] : [] },
  }));
  return books;
}
