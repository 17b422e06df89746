import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";

/** Built by `npm run build:ui`. */
const BUILDS = new URL("../../ui/built/", import.meta.url);

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml; charset=utf-8",
};

export interface DashboardFile {
  readonly type: string;
  readonly plain: Buffer;
  readonly br: Buffer;
  readonly gzip: Buffer;
}

/** A build of the dashboard, in memory: requested files are looked up by name, and no name becomes a path. */
export interface DashboardBuild {
  readonly hash: string;
  /** With the placeholders `__BASE__` and `__NONCE__`. */
  readonly page: string;
  readonly assets: ReadonlyMap<string, DashboardFile>;
}

let known: Promise<DashboardBuild | null> = Promise.resolve(null);

/** Null: there is no build. A newer build replaces the previous one. */
export async function readDashboard(): Promise<DashboardBuild | null> {
  const hash = await readText("current").then((text) => text?.trim());
  if (hash === undefined) return null;
  const before = await known;
  if (before?.hash === hash) return before;
  known = load(hash).catch(() => null);
  return await known;
}

async function readText(path: string): Promise<string | undefined> {
  return await readFile(new URL(path, BUILDS), "utf8").catch(() => undefined);
}

async function load(hash: string): Promise<DashboardBuild> {
  const folder = new URL(`${encodeURIComponent(hash)}/`, BUILDS);
  const names = (await readdir(new URL("assets/", folder))).filter((name) => extname(name) in TYPES);
  const assets = await Promise.all(
    names.map(async (name): Promise<[string, DashboardFile]> => {
      const read = async (suffix: string): Promise<Buffer> =>
        await readFile(new URL(`assets/${encodeURIComponent(name)}${suffix}`, folder));
      const [plain, br, gzip] = await Promise.all([read(""), read(".br"), read(".gz")]);
      return [name, { type: TYPES[extname(name)] ?? "application/octet-stream", plain, br, gzip }];
    }),
  );
  return { hash, page: await readFile(new URL("index.html", folder), "utf8"), assets: new Map(assets) };
}
