import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { unpackDebian } from "../debian-packages.ts";
import { freePort } from "../free-port.ts";

/**
 * AWS KMS for tests: Debian's moto_server, whose KMS checks ciphertexts and encryption contexts as AWS does. Its packages are
 * fetched once with apt (13 MB, no root, nothing is installed) and unpacked below node_modules/.cache. Where apt is not at
 * hand, LATCHKEY_TEST_MOTO names a moto_server that is there already (`pip install "moto[server]"`).
 */
export interface Moto {
  readonly url: string;
  stop(): Promise<void>;
}

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
    given === undefined || given === "" ? await debianMoto() : ([given, [], {}] as const);
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
    if (tries > 1_000 || child.exitCode !== null) {
      // Else the test's process would wait for it.
      child.kill("SIGKILL");
      throw new Error(`moto_server does not answer:\n${output}`);
    }
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

async function debianMoto() {
  const root = await unpackDebian({
    name: "moto",
    what: "Debian's moto_server, which the test of AWS KMS runs,",
    from: [
      { suite: "own", packages: OWN, withDependencies: false },
      { suite: "trixie", packages: ANY, withDependencies: false },
    ],
    instead: 'Name a moto_server in LATCHKEY_TEST_MOTO; `pip install "moto[server]"` gives one.',
  });
  return [
    "/usr/bin/python3",
    [join(root, "usr/bin/moto_server")],
    { PYTHONPATH: join(root, "usr/lib/python3/dist-packages") },
  ] as const;
}

async function answers(url: string): Promise<boolean> {
  return await fetch(`${url}/moto-api/`).then(
    ({ ok }) => ok,
    () => false,
  );
}
