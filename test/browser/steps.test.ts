// docs/browser.md: every kind of step, on a real browser and a target that is drawn by script.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { StepFailure } from "#answers/browser/step-failure.ts";
import type { StepBrowser } from "#answers/browser/step-browser.ts";
import type { StepConfig } from "#answers/browser/define-step.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { loginTypes } from "#strategies/registry.ts";
import { loginContext } from "../strategies/login-context.ts";
import { runNode } from "../nodes/node-context.ts";
import { browseAs } from "#engine/login/browse.ts";
import { openLog } from "#lib/log.ts";
import { Secret } from "#lib/secret.ts";
import { openBrowsers } from "#outbound/browser/browsers.ts";
import { openGate } from "#outbound/gate.ts";
import { testInAll } from "../tiers.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { EMAIL, openPortal, PASSWORD, TOKEN } from "./portal.ts";
import { doSteps, openStage, type Stage } from "./stage.ts";

let target: Target;
let stage: Stage;
let hasCode = false;

before(async () => {
  target = await openTarget();
  openPortal(target, { hasCode: () => hasCode });
  stage = await openStage(target.url);
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

const SETTINGS = {
  program: null,
  max: 1,
  memoryBytes: 2 ** 30,
  sandbox: true,
  network: "host" as const,
  uids: { first: 61_184, count: 1 },
};
const NOTHING = { gate: openGate({ allow: [] }), log: openLog({ level: "silent", format: "json" }) };

const signIn = (password = "{{ $password }}"): readonly StepConfig[] => [
  { goto: "/login" },
  { dismiss: { role: "button", name: "Accept all" } },
  { fill: { label: "Email", with: EMAIL } },
  { type: { label: "Password", with: password } },
  { click: { role: "button", name: "Sign in" } },
  {
    when: { visible: { label: "One-time code" } },
    steps: [
      { fill: { label: "One-time code", with: "123456" } },
      { click: { role: "button", name: "Verify" } },
    ],
  },
  {
    expect: {
      visible: { role: "heading", name: "Dashboard" },
      rejected: { text: "Wrong email or password" },
    },
  },
];

const failureOf = async (
  browser: StepBrowser,
  steps: readonly StepConfig[],
  place: "login" | "node" = "node",
): Promise<StepFailure> => {
  const error: unknown = await doSteps(browser, steps, { place }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof StepFailure, String(error));
  return error;
};

test("a login by steps: the banner is dismissed, the state is the hosts' cookies and storage, and a node goes on with it", async () => {
  const session = await stage.logIn(async (browser) => {
    const { begun } = await doSteps(browser, signIn(), { place: "login", variables: { password: PASSWORD } });
    assert.deepEqual(begun.slice(0, 5), [
      "steps[0] (goto /login)",
      'steps[1] (dismiss button "Accept all")',
      'steps[2] (fill label "Email")',
      'steps[3] (type label "Password")',
      'steps[4] (click button "Sign in")',
    ]);
    return await browser.capture();
  });
  assert.deepEqual(session.storage, {
    local: { "auth-tokens": JSON.stringify({ access: TOKEN }) },
    session: { token: TOKEN },
  });
  assert.deepEqual(session.secrets, [TOKEN]);
  assert.equal(session.isRestorable, true);
  assert.equal(stage.means.jar.cookieHeader(target.url), "sid=canary-cookie-778899");

  const login = new Secret({ headers: {}, cookies: null, browser: session.state });
  await browseAs({ ...stage.means, login }, new AbortController().signal, async (browser) => {
    const paged = await doSteps(browser, [
      { goto: "/invoices" },
      {
        repeat: {
          steps: [
            {
              extract: {
                rows: { css: "tbody tr" },
                columns: { no: ".no", total: "td.total", pdf: "a@href" },
              },
            },
          ],
          while: { enabled: { role: "button", name: "Next" } },
          next: [{ click: { role: "button", name: "Next" } }],
        },
      },
    ]);
    assert.equal(paged.rows.length, 9);
    assert.deepEqual(paged.rows[0], { no: "INV-11", total: "101.50", pdf: "/pdf/INV-11" });
    assert.equal(new Set(paged.rows.map(({ no }) => no)).size, 9);

    const { rows } = await doSteps(browser, [
      { reload: true },
      {
        repeat: {
          steps: [
            {
              each: {
                rows: { css: "tbody tr" },
                steps: [
                  { click: { role: "button", name: "Details" } },
                  { wait: { visible: { css: "i", has_text: "IBAN of" } } },
                  { extract: { fields: { number: ".no", iban: "i" } } },
                ],
              },
            },
          ],
          while: { enabled: { role: "button", name: "Next" } },
          next: [{ click: { role: "button", name: "Next" } }],
        },
      },
    ]);
    assert.deepEqual(rows[2], { number: "INV-13", iban: "IBAN of INV-13" });
    assert.deepEqual(rows[8], { number: "INV-33", iban: "IBAN of INV-33" });

    const few = await failureOf(browser, [
      { repeat: { steps: [{ wait: { for: "1ms" } }], while: { text: "Invoices" }, max: 2 } },
    ]);
    assert.match(few.message, /^steps\[0\] \(repeat\): there are more than 2 rounds; raise `max`/);
    const again: readonly StepConfig[] = [
      {
        repeat: {
          steps: [{ extract: { rows: { css: "tbody tr" }, columns: { no: ".no" } }, timeout: "300ms" }],
          while: { text: "Invoices" },
        },
      },
    ];
    const same = await failureOf(browser, again);
    assert.equal(same.code, "unexpected");
    assert.match(same.message, /steps\[0\]\.repeat\.steps\[0\].*still shows the rows of the round before/);
    // Nor do others come when the session has ended.
    const ended = await failureOf({ ...browser, expired: { text: "Invoices" } }, again);
    assert.equal(ended.code, "expired");
  });
});

test("a one-time code that is asked for, and a password that is refused", async () => {
  hasCode = true;
  const begun = await stage.browse(
    async (browser) =>
      (await doSteps(browser, signIn(), { place: "login", variables: { password: PASSWORD } })).begun,
  );
  assert.equal(begun[6], 'steps[5].steps[0] (fill label "One-time code")');
  hasCode = false;
  const refused = await stage.browse(
    async (browser) => await failureOf(browser, signIn("wrong-canary-pass"), "login"),
  );
  assert.equal(refused.code, "rejected");
  assert.deepEqual(refused.path, ["steps", 6]);
  assert.match(
    refused.message,
    /^steps\[6\] \(expect heading "Dashboard" visible\): the target rejected the credential/,
  );
});

test("fields, boxes, lists, keys, dialogs, frames, windows, and templates in locators", async () => {
  await stage.browse(async (browser) => {
    const { fields } = await doSteps(
      browser,
      [
        { goto: "/statement" },
        { dialog: { answer: "accept" } },
        { select: { label: "Year", option: "{{ $year }}" } },
        { uncheck: { label: "Drafts" } },
        { check: { label: "Drafts" } },
        { press: { key: "a", css: "#q" } },
        { click: { role: "button", name: "{{ $button }}" } },
        { hover: { text: "Menu", exact: true } },
        { fill: { label: "Search", frame: { css: "iframe" }, with: "in the frame" } },
        { expect: { visible: { text: "echo: in the frame", frame: { css: "iframe" } } } },
        { extract: { fields: { out: "#out", src: "iframe@src", none: ".none" } } },
        { goto: "/opener" },
        {
          popup: {
            click: { role: "button", name: "Choose" },
            steps: [{ fill: { label: "Name", with: "Dana" } }, { click: { role: "button", name: "OK" } }],
          },
        },
        { expect: { text: "Dana" } },
        { back: true },
        { expect: { url: "/statement" } },
      ],
      { variables: { year: 2025, button: "Ask" } },
    );
    assert.deepEqual(fields, {
      out: "2025;drafts false;drafts true;a;sure;menu;",
      src: "/frame",
      none: null,
    });
  });
});

test("a step that fails says what the page has instead, in our words", async () => {
  const cases: readonly (readonly [step: StepConfig, code: string, says: RegExp])[] = [
    [
      { click: { role: "button", name: "Save" } },
      "ambiguous",
      /^steps\[1\] \(click button "Save"\): 2 elements match button "Save": button "Save draft", button "Save all"; use `exact`, `in` or `nth`; the page is/,
    ],
    [
      { click: { role: "button", name: "Saev draft", exact: true } },
      "not_found",
      /there is no button "Saev draft"; there are: button "Save draft", button "Save all", button "Send"; the page is http:\/\/[^ ]+\/twins$/,
    ],
    [{ click: { role: "button", name: "Send" } }, "not_ready", /button "Send" is disabled; the page is/],
    [{ expect: { visible: { text: "Nowhere" } } }, "unexpected", /the page did not get there in time/],
    [{ wait: { response: { url: "/never" } } }, "timeout", /it took longer than 0\.3 s; the page is/],
    [
      { extract: { rows: { css: "li" }, columns: { a: "b" } } },
      "not_found",
      /no element matches `rows`; if the page may be without rows, say by `empty` how it shows that/,
    ],
    [{ goto: "https://elsewhere.example/" }, "blocked", /the URL is not of the allowed hosts/],
    [{ goto: "/missing", timeout: "3s" }, "", /^$/],
    [{ goto: "/broken", timeout: "3s" }, "unreachable", /the page answered with the status 503$/],
    [{ goto: "/dropped", timeout: "3s" }, "unreachable", /could not be loaded \(ERR_[A-Z_]+\)/],
  ];
  target.on("GET /broken", { status: 503, html: "" });
  target.on("GET /dropped", { drop: true });
  await stage.browse(async (browser) => {
    for (const [step, code, says] of cases) {
      const steps = [{ goto: "/twins" }, { timeout: "300ms", ...step }];
      if (code === "") await doSteps(browser, steps);
      else {
        const failure = await failureOf(browser, steps);
        assert.deepEqual([failure.code, failure.path], [code, ["steps", 1]], failure.message);
        assert.match(failure.message, says);
      }
    }
  });
  // The error page of a page that could not be loaded may come in the way of the next one: a run would have ended.
  await stage.browse(async (browser) => {
    const robot = await failureOf(browser, [
      { goto: "/robot" },
      { click: { text: "Continue" }, timeout: "300ms" },
    ]);
    assert.deepEqual([robot.code, robot.kind], ["captcha", "captcha"], robot.message);
    const rows = { rows: { css: "li" }, columns: { a: "b" }, empty: { text: "Are you human?" } };
    assert.deepEqual((await doSteps(browser, [{ extract: rows }])).rows, []);
  });
});

testInAll(
  "a captcha of a page that answers at once",
  "a captcha of a page that answers late is one, and a page that does not answer is not said to have changed",
  {},
  async () => {
    const captcha = '<div class="h-captcha" style="width:9em;height:3em">…</div>';
    const busy = (ms: number): string =>
      `${captcha}<script>setTimeout(() => { const end = Date.now() + ${ms}; while (Date.now() < end); }, 600)</script>`;
    target.on("GET /late", { html: busy(4_000) });
    target.on("GET /never", { html: busy(60_000) });
    for (const [path, kind] of [
      ["/late", "captcha"],
      ["/never", "timeout"],
    ] as const)
      await stage.browse(async (browser) => {
        const failure = await failureOf(browser, [
          { goto: path },
          { click: { text: "Continue" }, timeout: "700ms" },
        ]);
        assert.equal(failure.kind, kind, failure.message);
      });
  },
);

test("scripts come from the hosts and the resources only; what was refused is said", async () => {
  await using other = await openTarget();
  other.on("GET /app.js", {
    text: 'document.body.innerHTML = "<h1>Drawn</h1>"',
    headers: { "content-type": "text/javascript" },
  });
  target.on("GET /page", { html: `<body><script src="${other.url}/app.js"></script>` });
  const steps = [{ goto: "/page" }, { extract: { fields: { title: "h1" } }, timeout: "300ms" }];
  const signal = new AbortController().signal;
  const allowed = { ...stage.means, resources: [other.url] };
  const { fields } = await browseAs(allowed, signal, async (browser) => await doSteps(browser, steps));
  assert.deepEqual(fields, { title: "Drawn" });
  const refused = await stage.browse(async (browser) => await failureOf(browser, steps));
  assert.ok(refused.message.includes(`refused requests of the page: ${other.url} (`), refused.message);
  assert.equal(other.seen("GET /app.js").length, 1);
});

test("a secret is not in what is said about a fill that fails", async () => {
  await stage.browse(async (browser) => {
    for (const kind of ["fill", "type"])
      for (const field of [{ label: "Nowhere" }, { role: "button", name: "Send" }, { css: "button" }]) {
        const steps = [
          { goto: "/twins" },
          { [kind]: { ...field, with: "{{ $password }}" }, timeout: "300ms" },
        ];
        const error: unknown = await doSteps(browser, steps, {
          place: "login",
          variables: { password: PASSWORD },
        }).then(
          () => null,
          (thrown: unknown) => thrown,
        );
        assert.ok(error instanceof StepFailure, String(error));
        assert.ok(!`${error.message} ${error.stack ?? ""}`.includes(PASSWORD));
        assert.equal(error.cause, undefined);
        assert.match(error.message, /there is no label "Nowhere"|field is not editable|3 elements match/);
      }
  });
});

test("a browser that is not there is said with its remedy, and one that ends is not waited for", async (t) => {
  const browsers = openBrowsers({ ...NOTHING, settings: { ...SETTINGS, program: "/nowhere/chromium" } });
  await assert.rejects(
    browseAs({ ...stage.means, browsers }, new AbortController().signal, async () => {}),
    (error) =>
      error instanceof StepFailure &&
      error.kind === "browser_missing" &&
      /LATCHKEY_BROWSER/.test(error.message),
  );
  const steps = [{ goto: "/twins" }, { extract: { fields: { button: "button" } } }];
  const browse = async (): Promise<never> =>
    await browseAs({ ...stage.means, browsers }, new AbortController().signal, async () => assert.fail());
  await assert.rejects(
    runNode({ type: "browser", steps }, { context: { browse } }),
    (error) => error instanceof NodeFailure && error.kind === "browser_missing",
  );
  const login = loginTypes
    .get("browser")
    ?.login({ ...loginContext(t, { hosts: [target.url] }), browse }, { steps });
  await assert.rejects(
    async () => await login,
    (error) => error instanceof LoginFailure && error.kind === "browser_missing" && !error.rejected,
  );

  const stop = new AbortController();
  await assert.rejects(
    browseAs(stage.means, stop.signal, async (browser) => {
      setTimeout(() => stop.abort(new Error("stopped")), 50);
      await doSteps(browser, [{ wait: { visible: { text: "Nowhere" } } }]);
    }),
    /stopped/,
  );
});

test("a page that is busy is asked until it answers: a slow answer does not end a repetition", async () => {
  target.on("GET /busy", {
    html: `<p>1</p><button>Next</button><script>
      const [shown, next] = document.querySelectorAll("p, button");
      next.onclick = () => { shown.textContent = Number(shown.textContent) + 1; next.disabled = shown.textContent === "3"; };
      const work = () => { for (const end = performance.now() + 120; performance.now() < end; ); setTimeout(work, 1); };
      work();
    </script>`,
  });
  const next = { role: "button", name: "Next" };
  await stage.browse(async (browser) => {
    const { fields } = await doSteps(browser, [
      { goto: `${target.url}/busy` },
      {
        repeat: {
          steps: [{ extract: { fields: { page: "p" } } }],
          while: { enabled: next },
          next: [{ click: next }],
        },
      },
    ]);
    assert.deepEqual(fields, { page: "3" });
  });
});
