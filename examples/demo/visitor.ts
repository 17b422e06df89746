import { load } from "cheerio";
import { CommandFailed } from "#cli/output.ts";

interface Page {
  readonly url: string;
  readonly status: number;
  readonly html: string;
  /** The absolute URL to which it redirects the browser. */
  readonly location: string | null;
}

const STEPS_MAX = 20;

/**
 * An end user's browser without scripts: it has cookies by host, fills in forms by the names of their controls, and follows
 * redirects. Returns the first URL that starts with `leaves`, which is not opened.
 */
export async function walk(
  startUrl: string,
  answers: Readonly<Record<string, string>>,
  leaves: string,
): Promise<string> {
  const jar = new Map<string, Map<string, string>>();
  let page = await open(jar, startUrl);
  for (let step = 0; step < STEPS_MAX; step++) {
    if (page.location !== null) {
      if (new URL(page.location).origin === leaves) return page.location;
      page = await open(jar, page.location);
    } else {
      page = await submit(jar, page, answers);
    }
  }
  throw new CommandFailed(`The end user never came back from ${page.url}.`);
}

type Jar = Map<string, Map<string, string>>;

async function open(jar: Jar, url: string, form?: URLSearchParams): Promise<Page> {
  const { host, origin } = new URL(url);
  const cookies = jar.get(host) ?? new Map<string, string>();
  jar.set(host, cookies);
  const response = await fetch(url, {
    redirect: "manual",
    ...(form === undefined ? {} : { method: "POST", body: form }),
    headers: {
      ...(cookies.size > 0 && { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") }),
      ...(form !== undefined && { origin, "sec-fetch-site": "same-origin" }),
    },
  });
  for (const line of response.headers.getSetCookie()) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    cookies.set(name, value);
  }
  const location = response.headers.get("location");
  return {
    url,
    status: response.status,
    html: await response.text(),
    location: location === null ? null : new URL(location, url).href,
  };
}

/** Submits the page's form: its hidden inputs, the end user's entries, and the button that they press. */
async function submit(jar: Jar, page: Page, answers: Readonly<Record<string, string>>): Promise<Page> {
  const $ = load(page.html);
  const form = $('form[method="post"]').first();
  if (form.length === 0) throw new CommandFailed(`${page.url} answered ${page.status}, without a form.`);
  const values = new URLSearchParams();
  for (const control of form.find("input[name]:not([type=file])").toArray())
    values.set($(control).attr("name") ?? "", $(control).attr("value") ?? "");
  for (const [name, value] of Object.entries(answers)) {
    const isThere = form.find(`[name="${name}"]`).length > 0;
    if (isThere) values.set(name, value);
  }
  return await open(jar, new URL(form.attr("action") ?? "", page.url).href, values);
}
