/** The text of a type's page besides its schema. `example` is nodes of a Blueprint that has an INPUT `words` (JSON) with records `rows`. */
export interface NodeText {
  readonly example: string;
  readonly gives: string;
  readonly errors: readonly string[];
}

const EXPRESSION_FAILS =
  "An expression fails: the message names the node, the record, the key and the expression.";

export const NODE_TEXTS: Readonly<Record<string, NodeText>> = {
  input: {
    example: `- { id: period, type: input, refKey: period, accepts: json, schema: { type: object, required: [from] } }`,
    gives:
      "a value: the text, the JSON (with `accepts: json` or a `schema`), or the file that the trigger sent. In every expression it is `$inputs.<refKey>`; for a file, that has its name, type and size.",
    errors: [
      "If a required value is missing, or a value does not match its `schema`, the trigger is refused with 422, and no run is started.",
      "Without `required` and `schema` the trigger accepts any value; if `accepts: json` gets text that is not JSON, the run fails at this node.",
    ],
  },
  http: {
    example: `- id: items
  type: http
  request: { url: "https://data.example.com/items", query: { since: "{{ $inputs.words[0].since }}" } }
  paginate: { cursor: next, param: cursor, max_pages: 200 }
  records: items`,
    gives:
      "records with `records`, `parse`, `extract` or `for_each`; with `save: file` a file (with `for_each` one in each record); otherwise the text of the answer as a value. After a crash, requests whose output is in the journal are not repeated.",
    errors: [
      "An answer that does not meet `expect`, after the node's retries (for reads: connection errors, 429, 502, 503, 504).",
      "The egress gate refuses the request, a redirect leaves the hosts, or an answer is longer than `max_bytes`: never retried.",
      "More pages than `max_pages`, pages that repeat, or a `while` that is neither true nor false.",
      "With `until`: no answer meets the conditions within `for`; the message describes the last one.",
      "With `submit`: a page without the form, a control that the form does not have, or a value that is not one of a control's options. Nothing is sent then.",
      "The list does not exist, or there are fewer records than `expect.min_records`.",
      "A write whose outcome is unknown and that can't be looked up: the operator must decide, or with `on_unknown: fail` the run fails.",
    ],
  },
  browser: {
    example: `- id: prices
  type: browser
  steps:
    - goto: https://data.example.com/prices
    - extract:
        rows: { css: "table#prices tbody tr" }
        columns: { article: td.article, price: td.price, sheet: "a@href" }`,
    gives:
      "records: one for each row that an `extract` reads, with texts as values; or a single one with the `fields` that the steps read. [Browser automation](../browser.md) explains steps and locators.",
    errors: [
      "A step does not find its element in time, or finds several: the message names the step and what the page has instead. A read starts again from its first step, in a new browser, as often as `retry` says; operators see what the page showed.",
      "A write may have happened and can't be looked up: a person decides, or the node fails (`on_unknown`).",
      "A page can't be loaded, or is not of the hosts.",
      "The page asks for a captcha.",
      "The worker has no browser, or the browser ends by itself.",
      "The node takes longer than its `timeout`.",
    ],
  },
  loop: {
    example: `- id: sent
  type: loop
  for_each: rows
  steps:
    - { id: found, type: http, request: { url: "https://data.example.com/invoices/{{ number }}" }, records: $ }
    - id: posted
      type: http
      when: $steps.found.state = "open"
      request: { method: POST, url: "https://data.example.com/ledger", json: { number: "{{ number }}", total: "{{ $steps.found.total }}" } }
      records: $
  gives: "{ 'number': number, 'entry': $steps.posted.id }"`,
    gives:
      "the value of `gives` for each record, in their order; without it, the unchanged records. The output of each step is stored in the journal: after a crash, completed steps are not repeated, and no write is sent twice.",
    errors: [
      "A step fails, for the same reasons as an `http` node: the run fails, and the message names the step and the record. Writes of earlier iterations remain in the target.",
      "The value of `gives` is neither an object nor a list of objects.",
    ],
  },
  parse: {
    example: `- { id: parsed, type: parse, from: words, format: json, records: items }`,
    gives:
      "records: one per row of a table, match, or item of a list; for `text` a single one; for a calendar or an address book one per entry or card. Values of csv and of markup are strings.",
    errors: [
      "The text or file does not have this format; the message names the line, the row or the page.",
      "html: nothing matches `rows`, and neither `within` nor `empty` indicates an empty list.",
      "csv: the text has fewer lines than `skip`.",
      "The value is too large for a format that must be read as a whole (text, xlsx, html, xml, pdf, icalendar, vcard).",
    ],
  },
  map: {
    example: `- { id: lines, type: map, from: rows, fields: { number: number, total: $number(total) } }`,
    gives:
      "one new record for each, or as many as the value of `expression` has. They keep the `errors` and `isValid` of the old one.",
    errors: [EXPRESSION_FAILS, "The value of `expression` is neither an object nor a list of objects."],
  },
  filter: {
    example: `- { id: open, type: filter, from: rows, where: status = "open" }`,
    gives: "the records for which `where` is true, unchanged.",
    errors: [EXPRESSION_FAILS, "The value of `where` is not true, false, null or nothing."],
  },
  sort: {
    example: `- { id: sorted, type: sort, from: rows, by: [{ expression: total, order: descending }, number] }`,
    gives:
      "the same records, sorted. Their number is not limited: sets that don't fit in memory are sorted on disk.",
    errors: [EXPRESSION_FAILS],
  },
  dedupe: {
    example: `- { id: once, type: dedupe, from: rows, by: number }`,
    gives: "the first record with each value of `by`, in their order.",
    errors: [EXPRESSION_FAILS],
  },
  group: {
    example: `- id: totals
  type: group
  from: rows
  by: customer
  fields: { invoices: { count: true }, total: { sum: amount }, latest: { max: date } }`,
    gives:
      "one record for each group, in the order of their first records, with the fields of `by` and then `fields`. The numbers of records and groups are not limited: sets that don't fit in memory are sorted on disk.",
    errors: [
      EXPRESSION_FAILS,
      "`sum` has a value that is neither a number nor a decimal string, or the sum is too large for a number.",
      "`collect` has more than 10,000 values, or 4 million characters, in one group.",
    ],
  },
  join: {
    example: `- { id: orders, type: parse, from: words, format: json, records: orders }
- { id: matched, type: join, from: rows, with: orders, on: { left: order, right: number }, kind: left }`,
    gives:
      "for each pair, one record with the fields of both; if both have a field, the one of `from`. With `kind: left` also the records of `from` without a match.",
    errors: [EXPRESSION_FAILS],
  },
  validate: {
    example: `- id: checked
  type: validate
  from: rows
  schema: { type: object, required: [total], properties: { total: { type: number, minimum: 0 } } }
  rules: [{ assert: due >= "2020-01-01", field: due, message: Due date is too old }]
  on_invalid: mark`,
    gives: "the records with `errors` and `isValid`; with `on_invalid: drop` only the valid ones.",
    errors: [
      "A rule takes longer than 1 s, or too much memory. Any other failure of a rule is an error of the record.",
      "With `on_invalid: fail`, any invalid record.",
    ],
  },
  review: {
    example: `- { id: gate, type: review, from: rows, when: $counts.total > 0, title: Please look at these, editable: true, timeout: 3d, on_timeout: fail }`,
    gives:
      "the records after the decision: edited ones are checked again by the preceding `validate` nodes. While the run waits, it occupies no slot, and its timeout is paused.",
    errors: [
      "No decision within `timeout`, with `on_timeout: fail`.",
      "A rejection: the run becomes `cancelled`.",
    ],
  },
  output: {
    example: `- { id: kept, type: output, refKey: kept, handles: { valid: { from: rows, where: $isValid }, invalid: { from: rows, where: $not($isValid) } } }`,
    gives:
      "a key of the results: `refKey`, or `refKey.handle` for each of several handles. No other node can read it.",
    errors: [EXPRESSION_FAILS, "The value of `where` is not true, false, null or nothing."],
  },
};

export interface LoginText {
  readonly gives: string;
  readonly errors: readonly string[];
}

const MISSING = "The end user left an optional field empty that the login needs.";

export const LOGIN_TEXTS: Readonly<Record<string, LoginText>> = {
  basic: { gives: "An `Authorization: Basic` header on every request to the hosts.", errors: [MISSING] },
  digest: {
    gives:
      "An `Authorization: Digest` header (RFC 7616) on every request to the hosts, once the target has asked for one: MD5, SHA-256 and SHA-512-256, each also as `-sess`, with `qop=auth`. The strongest algorithm that the target offers is used. A nonce is reused with its count, and renewed when it expires.",
    errors: [
      MISSING,
      "The target asks for another algorithm, or does not offer `qop=auth`: the request fails, and the message says so.",
    ],
  },
  bearer: { gives: "An `Authorization: Bearer` header on every request to the hosts.", errors: [MISSING] },
  headers: {
    gives:
      "Headers on every request to the hosts: from templates, or those that the end user listed in a `headers` field.",
    errors: [
      "A header that the connection sets itself, or a value with characters that are not allowed in a header.",
      MISSING,
    ],
  },
  query: {
    gives:
      "Query parameters on every request to the hosts. They are added when the request is sent, so no node, message or record contains them.",
    errors: [MISSING],
  },
  http: {
    gives:
      "The cookies of its requests, and the headers of `session`. With `cache` they are cached (sealed), and tested with `check` before they are reused.",
    errors: [
      "A step's `expect` is not met: the message names the step and the expectation, never a value. After two such rejections in a row, logins are stopped for an hour (`lockout`).",
      "An `extract` finds nothing.",
      "All steps together take longer than `LATCHKEY_LOGIN_SECONDS`.",
    ],
  },
  browser: {
    gives:
      "The cookies and the storage of the browser, and the headers of `session`. Requests of `http` nodes have the cookies and headers, pages of `browser` nodes the cookies and the storage. With `cache` all of it is cached (sealed), and tested with `check` before it is reused.",
    errors: [
      "The page shows what `rejected` of an `expect` describes: after two such rejections in a row, logins are stopped for an hour (`lockout`).",
      "A step does not find its element in time, or finds several: the message names the step and what the page has instead.",
      "The page that has the field is not of the hosts (`secret_refused`); the page asks for a captcha, or offers only a passkey.",
      "The worker has no browser, or the browser ends by itself.",
      "All steps together take longer than `LATCHKEY_LOGIN_SECONDS`.",
    ],
  },
  oauth2: {
    gives:
      "An `Authorization: Bearer` header. Tokens are stored sealed, refreshed when they expire, and saved before they are used.",
    errors: [
      "`reconnect needed`: there are no tokens, or the target rejects the refresh token; the end user must sign in again.",
      "The secret that `client_secret` names is missing, or may not be sent to the token endpoint: [Account secrets](../secrets.md).",
    ],
  },
  mtls: {
    gives:
      "A client certificate, presented to the hosts over connections that are not shared with other runs.",
    errors: [
      "Refused when it is submitted: not PEM, a key of another certificate, a wrong passphrase, an expired certificate.",
    ],
  },
  none: { gives: "Nothing: the fields are stored but never sent.", errors: [] },
};
