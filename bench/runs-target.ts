import type { BareAnswer } from "./bare-process.ts";
import { startProgram } from "./processes.ts";

/** What the steps GET: a tiny JSON document, from a process of its own. */
export async function startTarget(): Promise<AsyncDisposable & { readonly url: string }> {
  const program = startProgram("./bare-process.ts");
  const body = JSON.stringify({ ok: true, number: "2026-1001", total: "1249.50" });
  const answer: BareAnswer = {
    status: 200,
    headers: { "content-type": "application/json", "content-length": String(Buffer.byteLength(body)) },
    body,
  };
  return { ...program, url: `http://127.0.0.1:${await program.ask<number>(answer)}` };
}
