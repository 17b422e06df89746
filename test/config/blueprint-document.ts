import assert from "node:assert/strict";
import type { KnownConfig } from "#actions/config/check-config.ts";

/** A Blueprint with nothing wrong. Every test changes one thing of it. */
export const BLUEPRINT = `blueprint: invoices
account: acme
credentials:
  portal: { strategy: strat_portal }
metadata:
  - { name: purchase_order, required: true }
hosts: [https://rates.example]
timeout: 10m
nodes:
  - { id: period, type: input, refKey: period, accepts: json }
  - id: list
    type: http
    credential: portal
    milestone: reading
    retry: { attempts: 3, initial: 1s, max: 2s }
    request: { url: /api/invoices, query: { from: "{{ $inputs.period.from }}" } }
    records: items
  - id: rates
    type: http
    request: { url: https://rates.example/today }
  - { id: rate, type: parse, from: rates, format: json }
  - id: lines
    type: map
    from: list
    fields: { number: number, total: $number(total) }
  - id: checked
    type: validate
    from: lines
    rules: [{ assert: total >= 0, field: total }]
  - id: out
    type: output
    refKey: invoices
    handles:
      valid: { from: checked, where: $isValid }
      invalid: { from: checked, where: $not($isValid) }
`;

/** What the service has already. */
export const known: KnownConfig = {
  secrets: new Map(),
  accounts: new Set(["acme"]),
  strategies: new Map([
    ["acme/strat_portal", { fieldKeys: ["username"], hosts: ["https://portal.example"], loginType: "basic" }],
    ["other/strat_theirs", { fieldKeys: [], hosts: [], loginType: "none" }],
  ]),
};

/** The Blueprint with one change. */
export function changed(from: string, to: string): string {
  assert.equal(BLUEPRINT.split(from).length, 2, `"${from}" stands once in the Blueprint`);
  return BLUEPRINT.replace(from, () => to);
}
