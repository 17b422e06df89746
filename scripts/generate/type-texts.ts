/** What a page says of a type besides its schema. `example` is nodes of a Blueprint that has an INPUT `words` (JSON) with records `rows`. */
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
      "A value: the text, the JSON (with `accepts: json` or a `schema`), or the file that the trigger sent. `$inputs.<refKey>` has it in every expression; of a file its name, type and size.",
    errors: [
      "The trigger is refused with 422 when a required value is missing or one breaks its `schema`; no run begins.",
      "Without `required` and `schema` nothing is refused at the trigger; a text that is no JSON then fails the run at this node.",
    ],
  },
  http: {
    example: `- id: items
  type: http
  request: { url: "https://data.example.com/items", query: { since: "{{ $inputs.words[0].since }}" } }
  paginate: { cursor: next, param: cursor, max_pages: 200 }
  records: items`,
    gives:
      "Records with `records`, `parse`, `extract` or `for_each`; with `save: file` a file (with `for_each` one in each record); else the text of the answer as a value. Its output is kept in the journal: after a crash it is not asked again.",
    errors: [
      "An answer that `expect` does not take, after the node's retries (connection errors, 429, 502, 503, 504, for reads).",
      "The egress gate refuses the request, a redirect leaves the hosts, or an answer is longer than `max_bytes`: never tried again.",
      "More pages than `max_pages`, pages that go round in a circle, or a `while` that gives neither true nor false.",
      "With `until`: no answer that will do for as long as `for`; the message says what the last one was.",
      "With `submit`: a page without the form, a control that the form does not have, or a value that is no option of one. Nothing is sent then.",
      "A list that is not there at all, or fewer records than `expect.min_records`.",
      "A write whose end nobody knows, and that can't be looked up: the operator is asked, or with `on_unknown: fail` the run fails.",
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
      "What `gives` makes of each record, in their order; without it the records as they are. What each step gave is kept in the journal: after a crash no step that was done is asked again, and no write is sent twice.",
    errors: [
      "A step fails, as its `http` node would: the message names the step and the record, and the run fails with it. The writes of the turns before stay in the target.",
      "`gives` gives something that is no object, and no list of objects.",
    ],
  },
  parse: {
    example: `- { id: parsed, type: parse, from: words, format: json, records: items }`,
    gives:
      "Records: one a row of a table, one a match, one an item of a list; of `text` one that holds it; of a calendar or an address book one an entry or a card. Values of csv and of markup are texts.",
    errors: [
      "The text or the file is not of this format; the message has the line, the row or the page.",
      "Of html: nothing matches `rows`, and neither `within` nor `empty` says that there are none.",
      "csv: the text has fewer lines than `skip` passes over.",
      "The value is larger than a format may be that must be read whole (text, xlsx, html, xml, pdf, icalendar, vcard).",
    ],
  },
  map: {
    example: `- { id: lines, type: map, from: rows, fields: { number: number, total: $number(total) } }`,
    gives:
      "One new record for each, or as many as `expression` gives. `errors` and `isValid` of the old one stay.",
    errors: [EXPRESSION_FAILS, "`expression` gives something that is no object, and no list of objects."],
  },
  filter: {
    example: `- { id: open, type: filter, from: rows, where: status = "open" }`,
    gives: "The records for which `where` is true, as they are.",
    errors: [EXPRESSION_FAILS, "`where` gives something else than true, false, null or nothing."],
  },
  sort: {
    example: `- { id: sorted, type: sort, from: rows, by: [{ expression: total, order: descending }, number] }`,
    gives: "The same records in order. Any number of them: what does not fit into memory is sorted on disk.",
    errors: [EXPRESSION_FAILS],
  },
  dedupe: {
    example: `- { id: once, type: dedupe, from: rows, by: number }`,
    gives: "The first record of each value of `by`, in their order.",
    errors: [EXPRESSION_FAILS],
  },
  group: {
    example: `- id: totals
  type: group
  from: rows
  by: customer
  fields: { invoices: { count: true }, total: { sum: amount }, latest: { max: date } }`,
    gives:
      "One record for each group, in the order of their first records: the fields of `by`, then `fields`. Any number of records and groups: what does not fit into memory is sorted on disk.",
    errors: [
      EXPRESSION_FAILS,
      "`sum` meets what is no number and no decimal as a text, or a sum that no number can hold.",
      "`collect` has more than 10,000 values, or 4 million characters, in one group.",
    ],
  },
  join: {
    example: `- { id: orders, type: parse, from: words, format: json, records: orders }
- { id: matched, type: join, from: rows, with: orders, on: { left: order, right: number }, kind: left }`,
    gives:
      "For each pair one record with the fields of both; of a field that both have, that of `from`. With `kind: left` also the records of `from` without a match.",
    errors: [EXPRESSION_FAILS],
  },
  validate: {
    example: `- id: checked
  type: validate
  from: rows
  schema: { type: object, required: [total], properties: { total: { type: number, minimum: 0 } } }
  rules: [{ assert: due >= "2020-01-01", field: due, message: Due date is too old }]
  on_invalid: mark`,
    gives: "The records with `errors` and `isValid`; with `on_invalid: drop` only the valid ones.",
    errors: [
      "A rule takes longer than 1 s, or too much memory; a rule that fails in any other way is an error of the record.",
      "With `on_invalid: fail`, the first record that is not valid.",
    ],
  },
  review: {
    example: `- { id: gate, type: review, from: rows, when: $counts.total > 0, title: Please look at these, editable: true, timeout: 3d, on_timeout: fail }`,
    gives:
      "The records as the person left them: edited ones are checked again by the `validate` nodes before it. While it waits the run holds nothing; its time does not count.",
    errors: [
      "Nobody decides within `timeout`, with `on_timeout: fail`.",
      "Rejected: the run becomes `cancelled`.",
    ],
  },
  output: {
    example: `- { id: kept, type: output, refKey: kept, handles: { valid: { from: rows, where: $isValid }, invalid: { from: rows, where: $not($isValid) } } }`,
    gives:
      "A key of the results: `refKey`, or `refKey.handle` for each of several handles. No other node can read it.",
    errors: [EXPRESSION_FAILS, "`where` gives something else than true, false, null or nothing."],
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
      "An `Authorization: Digest` header (RFC 7616) on every request to the hosts, once the target has asked for one: MD5, SHA-256 and SHA-512-256, each also as `-sess`, with `qop=auth`; the strongest that the target offers. A nonce is used again with its count, and renewed when it is over.",
    errors: [
      MISSING,
      "The target asks for another algorithm, or for no `qop=auth`: the request fails, and the message says so.",
    ],
  },
  bearer: { gives: "An `Authorization: Bearer` header on every request to the hosts.", errors: [MISSING] },
  headers: {
    gives:
      "Headers on every request to the hosts: by templates, or those that the end user listed in a `headers` field.",
    errors: ["A header that the connection sets itself, or a value that no header can hold.", MISSING],
  },
  query: {
    gives:
      "Query parameters on every request to the hosts, added where the request leaves; no node, message or record sees them.",
    errors: [MISSING],
  },
  http: {
    gives:
      "The cookies of its requests, and the headers of `session`. With `cache` they are kept sealed, and tested by `check` before they are used again.",
    errors: [
      "A step's `expect` is not met: the message names the step and what was expected, never a value. Two such rejections in a row stop further logins for an hour (`lockout`).",
      "An `extract` finds nothing.",
      "All steps together take longer than `LATCHKEY_LOGIN_SECONDS`.",
    ],
  },
  oauth2: {
    gives:
      "An `Authorization: Bearer` header. Tokens are kept sealed, refreshed when they end, and saved before they are used.",
    errors: [
      "`reconnect needed`: there are no tokens, or the target refuses the refresh token; the end user must sign in again.",
      "The secret that `client_secret` names is missing, or may not be sent to the token endpoint: [Account secrets](../secrets.md).",
    ],
  },
  mtls: {
    gives: "A client certificate, presented to the hosts over connections that no other run shares.",
    errors: [
      "Refused when it is submitted: no PEM, a key of another certificate, a wrong passphrase, an expired certificate.",
    ],
  },
  none: { gives: "Nothing: the fields are stored, and sent nowhere.", errors: [] },
};
