// `latchkey run --headed --slow` in a real window: a full Chromium on an X server that nobody sees.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startSite } from "../outbound/browser/stage.ts";
import { needsDisplay, openDisplay } from "../window.ts";
import { latchkey } from "./program.ts";

test(
  "the author sees a window, in which the steps are done one after the other",
  needsDisplay,
  async (context) => {
    await using display = await openDisplay();
    const folder = mkdtempSync(join(tmpdir(), "latchkey-test-run-"));
    context.after(() => rmSync(folder, { recursive: true, force: true }));
    const agents = new Set<string>();
    const site = await startSite(context, (request, response) => {
      agents.add(request.headers["user-agent"] ?? "");
      response.setHeader("content-type", "text/html");
      response.end(`<h1>Shown</h1><label>Name <input></label><button onclick="
      this.textContent = outerHeight > innerHeight ? 'In a window' : 'Nowhere'">Go</button>`);
    });
    const file = join(folder, "shown.yaml");
    writeFileSync(
      file,
      `blueprint: shown
account: acme
hosts: ["${site.origin}"]
nodes:
  - id: read
    type: browser
    retry: { attempts: 1 }
    steps:
      - goto: ${site.origin}/
      - fill: { label: Name, with: Dana }
      - click: { role: button, name: Go }
      - extract: { fields: { title: h1, button: button } }
  - { id: out, type: output, refKey: out, from: read }
`,
    );
    const environment = {
      LATCHKEY_BROWSER: display.program,
      LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
      DISPLAY: display.name,
    };
    const told = await latchkey(["run", file, "--headed", "--slow", "100"], environment);
    assert.equal(told.code, 0, told.stderr);
    assert.match(told.stdout, /Shown +In a window/);
    for (const agent of agents) assert.ok(!agent.includes("Headless"), agent);
  },
);
