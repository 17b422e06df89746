import type { BrowserContext, Frame, Page } from "playwright-core";
import { BrowserError } from "./browser-error.ts";
import { inspectStorage, type StorageReport } from "./inspect-storage.ts";
import type { Reach } from "./reach.ts";

type StorageState = Awaited<ReturnType<BrowserContext["storageState"]>>;
type Cookie = StorageState["cookies"][number];
type OriginStorage = StorageState["origins"][number];

/** A logged-in state: secret, and JSON. What belongs to `hosts` and nothing else. */
export interface BrowserState {
  readonly cookies: readonly Cookie[];
  /** Local storage and IndexedDB, as the driver writes them. */
  readonly origins: readonly OriginStorage[];
  readonly session: readonly SessionStorage[];
}

interface SessionStorage {
  readonly origin: string;
  readonly entries: readonly (readonly [key: string, value: string])[];
}

export interface CapturedState {
  readonly state: BrowserState;
  /**
   * Origins that keep a `CryptoKey` in IndexedDB. It comes back as an empty object: such a login can be used while its browser is
   * open, and must not be cached.
   */
  readonly notRestorable: readonly string[];
}

/** 1 MiB. */
const STATE_BYTES_MAX = 1_048_576;
const INSPECT_MS = 10_000;

/** Throws BrowserError (`state_too_large`), with the size of each origin. */
export async function captureState(
  context: BrowserContext,
  { hosts, stateBytesMax = STATE_BYTES_MAX }: Pick<Reach, "hosts"> & { readonly stateBytesMax?: number },
): Promise<CapturedState> {
  // Before the driver reads it into our memory: an application may keep gigabytes.
  const reports = await inspectOrigins(context, hosts, stateBytesMax);
  refuseLarge(new Map([...reports].map(([origin, { bytes }]) => [origin, bytes])), stateBytesMax);
  const { cookies, origins } = await context.storageState({ indexedDB: true });
  const state: BrowserState = {
    cookies: cookies.filter((cookie) => hosts.some((origin) => belongsTo(cookie, new URL(origin)))),
    origins: origins.filter(({ origin }) => hosts.includes(origin)),
    session: [...reports].flatMap(([origin, { session }]) =>
      session.length === 0 ? [] : [{ origin, entries: session }],
    ),
  };
  refuseLarge(sizesOf(state, hosts), stateBytesMax);
  return {
    state,
    notRestorable: [...reports].filter(([, report]) => report.hasKeys).map(([origin]) => origin),
  };
}

function refuseLarge(sizes: ReadonlyMap<string, number>, most: number): void {
  const total = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
  if (total <= most) return;
  const list = [...sizes].map(([origin, bytes]) => `${origin}: ${bytes}`).join(", ");
  throw new BrowserError("state_too_large", `the logged-in state is over ${most} bytes (${list})`);
}

/** Bytes of JSON. Cookies count for the first origin that they belong to. */
function sizesOf({ cookies, origins, session }: BrowserState, hosts: readonly string[]): Map<string, number> {
  const sizes = new Map<string, number>();
  const add = (origin: string, value: unknown): void =>
    void sizes.set(origin, (sizes.get(origin) ?? 0) + Buffer.byteLength(JSON.stringify(value)));
  for (const cookie of cookies)
    add(hosts.find((origin) => belongsTo(cookie, new URL(origin))) ?? "cookies", cookie);
  for (const each of [...origins, ...session]) add(each.origin, each);
  return sizes;
}

/** RFC 6265, 5.1.3: a domain with a dot in front is also its subdomains'. */
function belongsTo({ domain }: Cookie, { hostname }: URL): boolean {
  return domain.startsWith(".") ? `.${hostname}`.endsWith(domain) : hostname === domain;
}

/** What each of the hosts keeps: asked in an open frame, or else in an empty page of that origin. */
async function inspectOrigins(
  context: BrowserContext,
  hosts: readonly string[],
  bytesMax: number,
): Promise<ReadonlyMap<string, StorageReport>> {
  const reports = new Map<string, StorageReport>();
  const ask = async (frame: Frame, origin: string): Promise<void> => {
    const report = await inTime(frame.evaluate(inspectStorage, bytesMax));
    const known = reports.get(origin);
    // Session storage belongs to a window: that of the first one counts.
    reports.set(origin, known === undefined || known.session.length === 0 ? report : known);
  };
  for (const frame of context.pages().flatMap((page) => page.frames())) {
    const origin = URL.parse(frame.url())?.origin ?? "null";
    // A frame in a sandbox has its URL, and no storage.
    if (hosts.includes(origin)) await ask(frame, origin).catch(rethrowTimeout);
  }
  const closed = hosts.filter((origin) => !reports.has(origin));
  if (closed.length > 0) {
    const page = await context.newPage();
    try {
      await visitEmpty(page, closed, async (origin) => await ask(page.mainFrame(), origin));
    } finally {
      await page.close();
    }
  }
  return reports;
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new BrowserError("timeout", "the page did not say what it keeps")),
    INSPECT_MS,
  );
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function rethrowTimeout(error: unknown): void {
  if (error instanceof BrowserError) throw error;
}

/** An empty document of each origin, for which nothing is sent. */
async function visitEmpty(
  page: Page,
  origins: readonly string[],
  work: (origin: string) => Promise<void>,
): Promise<void> {
  const isAny = (): boolean => true;
  await page.route(isAny, async (route) => {
    // The browser may have ended: what a handler throws, nobody catches.
    await route.fulfill({ contentType: "text/html", body: "" }).catch(() => undefined);
  });
  for (const origin of origins) {
    await page.goto(origin);
    await work(origin);
  }
  await page.goto("about:blank");
  await page.unroute(isAny);
}

/**
 * Puts a state back before the first step. Session storage belongs to a window, so it is written in the page itself. Not by a script
 * that runs in each new document: it would also run after a log-out, and bring the old token back.
 */
export async function restoreState(
  context: BrowserContext,
  page: Page,
  state: BrowserState,
  hosts: readonly string[],
): Promise<void> {
  const isOwn = ({ origin }: { readonly origin: string }): boolean => hosts.includes(origin);
  const cookies = state.cookies.filter((cookie) =>
    hosts.some((origin) => belongsTo(cookie, new URL(origin))),
  );
  const origins = state.origins.filter(isOwn);
  if (cookies.length + origins.length > 0) await context.setStorageState({ cookies, origins });
  const entries = new Map(state.session.filter(isOwn).map((each) => [each.origin, each.entries]));
  if (entries.size === 0) return;
  await visitEmpty(page, [...entries.keys()], async (origin) => {
    const list = JSON.stringify(entries.get(origin));
    await page.evaluate(`for (const [key, value] of ${list}) sessionStorage.setItem(key, value)`);
  });
}
