/** A target with a login, a strategy with `verify` for it, and an end user at the hosted form. */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { csrfOf, send, submit, type WireAnswer } from "./form-visitor.ts";
import { listen } from "./hosted-setup.ts";
import { load } from "cheerio";

export const PASSWORD = "correct horse battery staple";
export const STRATEGY = "strat_tried";
export const BLUEPRINT = "read-rows";

export interface LoginTarget {
  readonly origin: string;
  /** The logins that it was sent, in their order. */
  readonly logins: readonly { readonly username: string; readonly password: string }[];
  /** Lets the logins of `slow` be answered. */
  release(): void;
  close(): void;
}

/** `slow` is answered when the test says so; `broken` with a fault; everybody else by the password. */
export async function startLoginTarget(): Promise<LoginTarget> {
  const logins: { username: string; password: string }[] = [];
  const held = new Set<() => void>();
  const answer = (response: ServerResponse, password: string): void => {
    const isRight = password === PASSWORD;
    if (isRight) response.setHeader("set-cookie", "session=good; Path=/");
    response.writeHead(isRight ? 200 : 401, { "content-type": "application/json" }).end("{}");
  };
  const server = await listen((request: IncomingMessage, response) => {
    if (request.url !== "/login") {
      const isKnown = /session=good/.test(request.headers.cookie ?? "");
      return void response
        .writeHead(isKnown ? 200 : 401, { "content-type": "application/json" })
        .end('{"items":[{"n":1}]}');
    }
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const form = new URLSearchParams(body);
      const [username, password] = [form.get("username") ?? "", form.get("password") ?? ""];
      logins.push({ username, password });
      if (username === "broken") return void response.writeHead(500).end();
      if (username === "slow") return void held.add(() => answer(response, password));
      answer(response, password);
    });
  });
  return {
    origin: server.origin,
    logins,
    release: () => {
      for (const go of held) go();
      held.clear();
    },
    close: () => server.close(),
  };
}

/** `more`: further keys of the login. */
export const triedDocuments = (
  origin: string,
  more: Readonly<Record<string, unknown>> = { cache: "15m" },
): readonly string[] => [
  JSON.stringify({
    strategy: STRATEGY,
    account: "acme",
    name: "Northwind",
    hosts: [origin],
    fields: [
      { key: "username", label: "User name", type: "text" },
      { key: "password", label: "Password", type: "password" },
    ],
    login: {
      type: "http",
      steps: [
        {
          request: {
            method: "POST",
            url: "/login",
            form: { username: "{{ $credential.username }}", password: "{{ $credential.password }}" },
          },
          expect: { status: [200] },
        },
      ],
      ...more,
    },
    verify: true,
  }),
  JSON.stringify({
    blueprint: BLUEPRINT,
    account: "acme",
    name: BLUEPRINT,
    credentials: { target: { strategy: STRATEGY } },
    nodes: [
      { id: "asked", type: "http", credential: "target", request: { url: "/rows" }, records: "items" },
      { id: "out", type: "output", refKey: "out", from: "asked" },
    ],
  }),
];

/** Submits the form and gets the page that waits. */
export async function submitToTry(
  hostedUrl: string,
  username: string,
  password: string,
): Promise<WireAnswer> {
  const answer = await submit(hostedUrl, { username, password });
  assert.equal(answer.status, 200, answer.text);
  assert.match(answer.text, /Checking with/);
  assert.ok(!answer.text.includes(password), "the page that waits has the password");
  return answer;
}

/** Sends the form of a page that waits, as its script or its button does. */
export async function look(hostedUrl: string, page: string): Promise<WireAnswer> {
  const $ = load(page);
  const form = $("form.check");
  const body = new URLSearchParams({ _csrf: csrfOf(page) });
  for (const area of form.find("textarea")) body.set($(area).attr("name") ?? "", $(area).text());
  return await send(new URL(form.attr("action") ?? "", hostedUrl).href, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: body.toString(),
  });
}

/** Submits a login and looks until there is an outcome. */
export async function tryLogin(hostedUrl: string, username: string, password: string): Promise<WireAnswer> {
  let answer = await submitToTry(hostedUrl, username, password);
  for (let looks = 0; looks < 6 && /Checking with/.test(answer.text); looks++)
    answer = await look(hostedUrl, answer.text);
  return answer;
}
