/** The React wrapper, bundled as a customer would, in a real Chromium and in React's strict mode. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { build, type Rolldown } from "vite";
import { launchChromium } from "../hosted/chromium.ts";
import { openVisitor, readWidget, startSite, until } from "../hosted/embed-stage.ts";
import { GOOD, setUpEmbedded } from "../hosted/embedded-setup.ts";

const WRAPPER = fileURLToPath(new URL("../../sdk/react/latchkey.ts", import.meta.url));
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A page of a customer: a button for the dialog, and the flow in the page; the test says what is shown by `show`. */
const PAGE = `
import { createElement as h, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { LatchkeyConnect, useLatchkey } from ${JSON.stringify(WRAPPER)};
globalThis.told = [];
const tell = (name) => (payload) => told.push([name, payload]);
function Button({ script, session }) {
  const { open, error } = useLatchkey(script);
  const start = () => open({ ...session, onCompleted: tell("completed"), onExit: tell("exited") });
  return h("button", { id: "go", disabled: !open, onClick: start }, error ? error.message : "Connect");
}
function App() {
  const [shown, show] = useState({});
  globalThis.show = show;
  const { script, dialog, inPage, theme } = shown;
  return h("main", null,
    dialog && h(Button, { script, session: dialog }),
    inPage && h(LatchkeyConnect, { ...script, ...inPage, theme, className: "here", onReady: tell("ready"),
      onCompleted: tell("completed"), onError: tell("error") }));
}
createRoot(document.querySelector("#root")).render(h(StrictMode, null, h(App)));
`;

async function bundle(): Promise<string> {
  const id = `${ROOT}page-of-a-customer.js`;
  const [output] = (await build({
    configFile: false,
    root: ROOT,
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"development"' },
    plugins: [
      {
        name: "page",
        enforce: "pre",
        resolveId: (source) => (source.endsWith("page-of-a-customer.js") ? id : null),
        load: (source) => (source === id ? PAGE : null),
      },
    ],
    build: { write: false, minify: false, lib: { entry: id, formats: ["iife"], name: "page" } },
  })) as Rolldown.RolldownOutput[];
  const chunk = output?.output[0];
  assert.ok(chunk?.type === "chunk");
  return chunk.code;
}

test("the hook opens a dialog, the component a frame in the page; both go with their component", async (t) => {
  const site = await startSite("localhost");
  t.after(() => site.close());
  const script = await bundle();
  await using embedded = await setUpEmbedded({ origins: [site.origin] });
  const scriptUrl = `${embedded.service.url}/embed/v1/latchkey.js`;
  const { integrity } = await readWidget(embedded.service.url);
  site.pages.set("/", {
    html: '<!doctype html><html lang="en"><title>React</title><div id="root"></div><script src="/page.js"></script>',
  });
  site.pages.set("/page.js", { html: script, headers: { "content-type": "text/javascript" } });
  const browser = await launchChromium();
  t.after(async () => await browser.close());
  await using visitor = await openVisitor(browser);
  const { page, complaints } = visitor;
  await page.goto(site.origin);
  const show = async (what: object): Promise<void> =>
    await page.evaluate(`show(${JSON.stringify({ script: { scriptUrl, integrity }, ...what })})`);
  const asked = async (): Promise<{ clientToken: string; embedUrl: string }> => {
    const session = await embedded.create();
    return { clientToken: session.client_token, embedUrl: session.embed_url };
  };

  await show({ dialog: await asked() });
  await page.locator("#go:enabled").click();
  const inDialog = page.frameLocator("dialog iframe");
  await inDialog.getByRole("button", { name: "Cancel" }).click();
  await until(page, "told.some(([name]) => name === 'exited')");
  await page.locator("#go").click();
  await inDialog.getByLabel("Email address").fill(GOOD.email);
  await show({});
  await page.locator("dialog").waitFor({ state: "detached" });

  const inPage = await asked();
  await show({ inPage });
  const frame = page.frameLocator(".here iframe");
  await frame.getByLabel("Email address").fill(GOOD.email);
  // Strict mode mounts twice, and one frame is left; another theme keeps it, with what was typed.
  assert.equal(await page.locator("iframe").count(), 1);
  await show({ inPage, theme: "dark" });
  await frame.locator("html[data-theme=dark]").waitFor({ state: "attached" });
  assert.equal(await frame.getByLabel("Email address").inputValue(), GOOD.email);
  await frame.getByLabel("Password", { exact: true }).fill(GOOD.password);
  await frame.getByRole("button", { name: "Connect" }).click();
  await until(page, "told.some(([name]) => name === 'completed')");
  await show({});
  assert.equal(await page.locator("iframe").count(), 0);
  assert.deepEqual(complaints, []);

  // A script that is not there is told, and can be had later.
  const missing = { scriptUrl: `${embedded.service.url}/embed/v1/none.js` };
  await page.evaluate(`show(${JSON.stringify({ script: missing, dialog: inPage })})`);
  await page.getByText("could not be loaded").waitFor();
});
