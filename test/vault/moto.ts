import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * AWS KMS for tests: Debian's moto_server, whose KMS checks ciphertexts and encryption contexts as AWS does. Its packages are
 * fetched once with apt (13 MB, no root, nothing is installed) and unpacked below node_modules/.cache. Where apt is not at
 * hand, LATCHKEY_TEST_MOTO names a moto_server that is there already (`pip install "moto[server]"`).
 */
export interface Moto {
  readonly url: string;
  stop(): Promise<void>;
}

const project = resolve(import.meta.dirname, "../..");
const cache = join(project, "node_modules/.cache/moto");
/** All but these three are the same on every machine. */
const OWN = ["python3-cryptography", "python3-cffi-backend", "python3-markupsafe"];
const ANY = (
  "moto boto3 botocore s3transfer jmespath flask werkzeug jinja2 responses xmltodict antlr4 requests urllib3 dateutil six " +
  "itsdangerous click blinker certifi idna chardet flask-cors colorama"
)
  .split(" ")
  .map((name) => `python3-${name}`);

export async function startMoto(): Promise<Moto> {
  const given = process.env["LATCHKEY_TEST_MOTO"];
  const [program, arguments_, environment] =
    given === undefined || given === ""
      ? ([
          "/usr/bin/python3",
          [join(fetchPackages(), "usr/bin/moto_server")],
          { PYTHONPATH: join(cache, "root/usr/lib/python3/dist-packages") },
        ] as const)
      : ([given, [], {}] as const);
  const port = await freePort();
  const child = spawn(program, [...arguments_, "-H", "127.0.0.1", "-p", String(port)], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const ended = new Promise<void>((resolve_) => child.once("close", () => resolve_()));
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await answers(url)); tries++) {
    if (tries > 300 || child.exitCode !== null) throw new Error(`moto_server does not answer:\n${output}`);
    await sleep(100);
  }
  return {
    url,
    stop: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function answers(url: string): Promise<boolean> {
  return await fetch(`${url}/moto-api/`).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve_) => server.listen(0, "127.0.0.1", resolve_));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve_) => server.close(resolve_));
  return port;
}

/** The folder with the unpacked packages; whole or not there. */
function fetchPackages(): string {
  const root = join(cache, "root");
  if (existsSync(root)) return root;
  if (!existsSync("/usr/bin/apt-get") || !existsSync("/usr/bin/python3")) {
    throw new Error(
      "The test of AWS KMS runs Debian's moto_server, and this machine has no apt-get or no /usr/bin/python3. Name a " +
        'moto_server in LATCHKEY_TEST_MOTO; `pip install "moto[server]"` gives one.',
    );
  }
  const work = join(cache, `work-${process.pid}`);
  for (const folder of ["apt/lists/partial", "apt/cache/archives/partial", "debs", "root"])
    mkdirSync(join(work, folder), { recursive: true });
  try {
    download(work, "own", ownRelease(), OWN);
    download(work, "trixie", debianSources("trixie"), ANY);
    for (const file of readdirSync(join(work, "debs")))
      execFileSync("dpkg-deb", ["-x", join(work, "debs", file), join(work, "root")]);
    // Two at once: the second finds the first's.
    if (!existsSync(root)) renameSync(join(work, "root"), root);
  } catch (error) {
    const { stderr } = error as { stderr?: Buffer };
    throw new Error(
      `Debian's moto_server could not be fetched with apt (${stderr?.toString("utf8").trim().split("\n").at(-1) ?? String(error)}). ` +
        "Name one in LATCHKEY_TEST_MOTO.",
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return root;
}

/** With lists and cache of its own, so that neither root nor the machine's are needed. */
function download(work: string, name: string, sources: string, packages: readonly string[]): void {
  const [list, config, status] = ["sources.list", `${name}.conf`, "apt/status"].map((file) =>
    join(work, file),
  );
  writeFileSync(list ?? "", sources);
  if (!existsSync(status ?? "")) writeFileSync(status ?? "", "");
  writeFileSync(
    config ?? "",
    `Dir::Etc::sourcelist "${list}"; Dir::Etc::sourceparts "-"; Dir::State::lists "${work}/apt/lists";
Dir::State::status "${status}"; Dir::Cache "${work}/apt/cache"; Debug::NoLocking "1"; APT::Sandbox::User "";
`,
  );
  const options = {
    cwd: join(work, "debs"),
    env: { ...process.env, APT_CONFIG: config },
    stdio: ["ignore", "ignore", "pipe"] as ["ignore", "ignore", "pipe"],
  };
  execFileSync("apt-get", ["update"], options);
  execFileSync("apt-get", ["download", ...packages], options);
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
  const codename = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "trixie";
  return debianSources(codename);
}
