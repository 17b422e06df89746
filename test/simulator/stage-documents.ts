import { blueprint } from "../documents/bench.ts";
import { TARGET } from "./target.ts";

const HOSTS = `hosts: ['${TARGET}']`;
const ORDER = `request:
    method: POST
    url: "${TARGET}/orders"
    json: { run: "{{ $run.id }}", number: "{{ number }}", token: "{{ $token }}" }`;
const LINES = `- { id: given, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: given, format: json }`;
const out = (from: string): string => `- { id: out, type: output, refKey: out, from: ${from} }`;

/** Writes that can be looked up. */
const SENDS = `${LINES}
- id: sent
  type: http
  for_each: lines
  ${ORDER}
  retry: { attempts: 3 }
  verify: { request: { url: "${TARGET}/orders", query: { token: "{{ $token }}" } }, when: there }
${out("sent")}`;
/** Writes that only the operator can find out about. */
const BLIND = `${LINES}
- id: sent
  type: http
  for_each: lines
  ${ORDER}
${out("sent")}`;
const PACED = `- { id: items, type: http, request: { url: "${TARGET}/paced", query: { run: "{{ $run.id }}" } }, throttle: { requests: 1, per: 2s }, records: items }
${out("items")}`;
const CROWD = `- { id: items, type: http, request: { url: "${TARGET}/crowd", query: { run: "{{ $run.id }}" } }, throttle: { requests: 1, per: 2s }, records: items }
${out("items")}`;
/** Its request ends the process that sends it. */
const POISON = `- { id: items, type: http, request: { url: "${TARGET}/poison", query: { run: "{{ $run.id }}" } }, records: items }
${out("items")}`;
/** Each of its requests is refused some times, and all together more often than a run may try again. */
const STUBBORN = `${LINES}
- id: items
  type: http
  for_each: lines
  request: { url: "${TARGET}/stubborn", query: { run: "{{ $run.id }}", number: "{{ number }}" } }
  retry: { attempts: 20, backoff: fixed, initial: 100ms }
  records: items
${out("items")}`;
/** Its request ends the process that sends it twice, and the third time it takes long. */
const LINGERS = `- { id: items, type: http, request: { url: "${TARGET}/lingers", query: { run: "{{ $run.id }}" } }, timeout: 2m, records: items }
${out("items")}`;
/** A read with a login: `slots` are its credentials. */
const reads = (...slots: readonly string[]): string =>
  `${slots
    .map(
      (slot) =>
        `- { id: ${slot}s, type: http, credential: ${slot}, request: { url: /items, query: { run: "{{ $run.id }}" } }, records: items }`,
    )
    .join("\n")}\n${out(`${slots[0]}s`)}`;
/** A login of one request, which the target takes its time for. */
const strategy = (id: string, more: string): string => `strategy: ${id}
account: vendor
hosts: ["${TARGET}"]
fields: [{ key: user, label: User, type: text }, { key: password, label: Password, type: password }]
login:
  type: http
  steps:
    - request: { method: POST, url: /login, json: { user: "{{ $credential.user }}", password: "{{ $credential.password }}" } }
      extract: { session: { json: token } }
  session: { headers: { Authorization: "Bearer {{ $session }}" } }
${more}`;
const ASKS = `- { id: items, type: http, request: { url: "${TARGET}/asked", query: { run: "{{ $run.id }}" } }, until: { when: "state = 'done'", every: 2s, for: 5m }, records: items }
${out("items")}`;
const GATED = `${LINES}
- { id: gate, type: review, from: lines, timeout: 15s, on_timeout: approve }
- id: sent
  type: http
  for_each: gate
  ${ORDER}
  verify: { request: { url: "${TARGET}/orders", query: { token: "{{ $token }}" } }, when: there }
${out("sent")}`;

/** What can be triggered, by account. */
export const BLUEPRINTS = {
  acme: ["sends", "blind", "paced", "asks", "gated"],
  neighbour: ["sends"],
  /** More runs at once than there are turns for them in their time. */
  crowd: ["crowd"],
  /** Runs that end their process. */
  rogue: ["poison", "stubborn", "lingers"],
  /** Its runs log in: `slow` each time, `portal` when the session of a login before is over or refused. */
  vendor: ["slow", "portal"],
  /** Each credential may be in use once at a time, and `both` needs two of them. */
  partner: ["one", "other", "both"],
} as const;
export type AccountSlug = keyof typeof BLUEPRINTS;

/** Those that have been collected, by account and name, with their strategies. */
export const CREDENTIALS = {
  vendor: { slow: "strat_slow", portal: "strat_portal" },
  partner: { one: "strat_single", other: "strat_single" },
} as const;
/** Which credentials a Blueprint's runs are given, in the order of its slots. */
export const CREDENTIALS_OF: Readonly<Record<string, readonly string[]>> = {
  slow: ["slow"],
  portal: ["portal"],
  one: ["one"],
  other: ["other"],
  both: ["one", "other"],
};

/** Shorter than the silence of a target that never answers. */
const TIMEOUT = "timeout: 5m";

export const DOCUMENTS = [
  "account: acme\nconcurrency: 4",
  "account: neighbour\nconcurrency: 2",
  "account: crowd\nconcurrency: 20",
  "account: rogue\nconcurrency: 2",
  "account: vendor\nconcurrency: 9",
  "account: partner\nconcurrency: 6",
  strategy("strat_slow", ""),
  strategy("strat_portal", "  check: { request: { url: /session } }\n  cache: 8s"),
  `strategy: strat_single
account: partner
hosts: ["${TARGET}"]
fields: [{ key: token, label: Token, type: password }]
login: { type: bearer, token: token }
concurrency: 1`,
  blueprint("sends", SENDS, `${HOSTS}\n${TIMEOUT}`),
  blueprint("blind", BLIND, `${HOSTS}\n${TIMEOUT}`),
  blueprint("paced", PACED, `${HOSTS}\n${TIMEOUT}`),
  blueprint("asks", ASKS, `${HOSTS}\n${TIMEOUT}`),
  blueprint("gated", GATED, `${HOSTS}\n${TIMEOUT}`),
  blueprint("sends", SENDS, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: neighbour"),
  blueprint("crowd", CROWD, `${HOSTS}\ntimeout: 15s`).replace("account: acme", "account: crowd"),
  blueprint("stubborn", STUBBORN, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: rogue"),
  blueprint("poison", POISON, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: rogue"),
  blueprint("lingers", LINGERS, `${HOSTS}\n${TIMEOUT}`).replace("account: acme", "account: rogue"),
  // Shorter than the logins before it, which are not its time.
  blueprint("slow", reads("it"), "credentials: { it: { strategy: strat_slow } }\ntimeout: 15s").replace(
    "account: acme",
    "account: vendor",
  ),
  blueprint("portal", reads("it"), `credentials: { it: { strategy: strat_portal } }\n${TIMEOUT}`).replace(
    "account: acme",
    "account: vendor",
  ),
  ...["one", "other"].map((key) =>
    blueprint(key, reads("it"), `credentials: { it: { strategy: strat_single } }\n${TIMEOUT}`).replace(
      "account: acme",
      "account: partner",
    ),
  ),
  blueprint(
    "both",
    reads("it", "too"),
    `credentials: { it: { strategy: strat_single }, too: { strategy: strat_single } }\n${TIMEOUT}`,
  ).replace("account: acme", "account: partner"),
];
