import type { Redact } from "./spool.ts";

const SHORTEST = 6;
const PLACE = "[REDACTED]";

/**
 * Replaces a run's secret values wherever a target echoes them: as they are, URL-encoded, in base64, in hex, JSON-escaped.
 * Values under six characters can't be matched without hitting ordinary text (design, page 6, T14). This is the second net.
 */
export function makeRedact(secrets: readonly string[]): Redact {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < SHORTEST) continue;
    const bytes = Buffer.from(secret, "utf8");
    for (const form of [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      // As a form or a query writes it: a space is a plus sign.
      new URLSearchParams({ s: secret }).toString().slice(2),
      bytes.toString("base64"),
      bytes.toString("base64url"),
      bytes.toString("hex"),
    ]) {
      if (form.length >= SHORTEST) forms.add(form);
    }
  }
  // Longest first, so that no form leaves a piece of another behind.
  const ordered = [...forms].sort((a, b) => b.length - a.length);
  if (ordered.length === 0) return (text) => text;
  return (text) =>
    ordered.reduce((clean, form) => (clean.includes(form) ? clean.replaceAll(form, PLACE) : clean), text);
}
