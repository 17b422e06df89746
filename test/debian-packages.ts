import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

/** What is fetched with apt and unpacked below `node_modules/.cache/<name>`: no root is needed, and nothing is installed. */
export interface WantedPackages {
  readonly name: string;
  /** As messages call it. */
  readonly what: string;
  readonly from: readonly {
    /** `own`: the release of this machine, for what must fit its programs. */
    readonly suite: "own" | "trixie";
    readonly packages: readonly string[];
    /** With all that they need, down to the C library: they run on any machine then. */
    readonly withDependencies: boolean;
  }[];
  /** What to do where it can't be fetched. */
  readonly instead: string;
}

const CACHE = resolve(import.meta.dirname, "../node_modules/.cache");
const LOCK_LOOK_MS = 200;
const execute = promisify(execFile);

/** Why Debian's packages can't be had here; null: they can. */
export function whyNoDebian(): string | null {
  const has = ["/usr/bin/apt-get", "/usr/bin/dpkg-deb"].every((file) => existsSync(file));
  return has ? null : "this machine has no apt-get";
}

/** The folder with the unpacked packages; whole or not there. */
export async function unpackDebian(wanted: WantedPackages): Promise<string> {
  const cache = join(CACHE, wanted.name);
  const root = join(cache, "root");
  if (existsSync(root)) return root;
  const reason = whyNoDebian();
  if (reason !== null) throw new Error(`${wanted.what} can't be fetched: ${reason}. ${wanted.instead}`);
  mkdirSync(cache, { recursive: true });
  const unlock = await lock(join(cache, "lock"));
  try {
    // Another test file was first.
    if (!existsSync(root)) await fetchInto(wanted, cache, root);
  } finally {
    unlock();
  }
  return root;
}

/** The loader and the libraries of the architecture that was fetched. */
export function placesIn(root: string): { readonly loader: string; readonly libraries: string } {
  for (const triple of readdirSync(join(root, "usr/lib")).filter((name) => name.endsWith("-linux-gnu"))) {
    const libraries = join(root, "usr/lib", triple);
    const loader = readdirSync(libraries).find((name) => name.startsWith("ld-linux"));
    if (loader !== undefined) return { loader: join(libraries, loader), libraries };
  }
  throw new Error(`There is no loader below ${root}. Remove that folder: it is fetched again.`);
}

async function fetchInto(wanted: WantedPackages, cache: string, root: string): Promise<void> {
  const work = join(cache, `work-${process.pid}`);
  for (const folder of ["lists/partial", "archives/partial", "root"])
    mkdirSync(join(work, folder), { recursive: true });
  writeFileSync(join(work, "status"), "");
  try {
    for (const { suite, packages, withDependencies } of wanted.from)
      await download(work, suite, packages, withDependencies);
    for (const file of readdirSync(join(work, "archives")).filter((name) => name.endsWith(".deb")))
      await execute("dpkg-deb", ["-x", join(work, "archives", file), join(work, "root")]);
    renameSync(join(work, "root"), root);
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    const reason = stderr?.trim().split("\n").at(-1) ?? String(error);
    throw new Error(`${wanted.what} could not be fetched with apt (${reason}). ${wanted.instead}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** With lists and a cache of its own, so that neither root nor the machine's are needed. */
async function download(
  work: string,
  suite: "own" | "trixie",
  packages: readonly string[],
  withDependencies: boolean,
): Promise<void> {
  const [list, config] = [join(work, `${suite}.list`), join(work, `${suite}.conf`)];
  writeFileSync(list, debianSources(suite === "own" ? ownRelease() : suite));
  writeFileSync(
    config,
    `Dir::Etc::sourcelist "${list}"; Dir::Etc::sourceparts "-"; Dir::State::lists "${work}/lists";
Dir::State::status "${work}/status"; Dir::Cache "${work}"; Dir::Cache::archives "${work}/archives";
Debug::NoLocking "1"; APT::Sandbox::User ""; Acquire::Retries "3";
`,
  );
  const options = { cwd: join(work, "archives"), env: { ...process.env, APT_CONFIG: config } };
  await execute("apt-get", ["update"], options);
  await execute(
    "apt-get",
    withDependencies
      ? ["install", "-y", "--download-only", "--no-install-recommends", ...packages]
      : ["download", ...packages],
    { ...options, maxBuffer: 16 * 1_048_576 },
  );
}

/** One installer at a time; that of a process which is gone counts for nothing. Gives what opens it again. */
async function lock(path: string): Promise<() => void> {
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx" });
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (!isHeld(path)) rmSync(path, { force: true });
    await sleep(LOCK_LOOK_MS);
  }
}

function isHeld(path: string): boolean {
  try {
    const pid = readFileSync(path, "utf8");
    // Its owner is just about to write its number.
    return pid === "" || existsSync(`/proc/${pid}`);
  } catch {
    return true;
  }
}

/** The Debian mirror that this machine uses, else Debian's own. */
function debianSources(suite: string): string {
  const folder = "/etc/apt/sources.list.d";
  const files = [
    "/etc/apt/sources.list",
    ...(existsSync(folder) ? readdirSync(folder).map((file) => join(folder, file)) : []),
  ];
  const text = files
    .filter((file) => /\.(list|sources)$/.test(file) && existsSync(file))
    .map((file) => readFileSync(file, "utf8").replaceAll(/^#.*$/gm, ""))
    .join("\n");
  const mirror = /\b(https?:\/\/\S+\/debian)\/?(?=\s)/.exec(text)?.[1] ?? "http://deb.debian.org/debian";
  return `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror} ${suite} main\n`;
}

function ownRelease(): string {
  return /^VERSION_CODENAME=(\w+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "trixie";
}
