import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { BrowserError } from "./browser-error.ts";
import { PID_FILE, type RunFolder } from "./run-folder.ts";

const run = promisify(execFile);

const SYSTEM_FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];
const PROBE_MS = 10_000;
/** The longest file that a browser may write, in bytes. */
const FILE_BYTES_MAX = 1_073_741_824;

export interface LaunchLimits {
  /** The most data that one process may have, in bytes. */
  readonly processBytes: number;
}

/**
 * Writes the file that the driver starts in place of Chromium, because the driver can't change the user of what it starts. It gives
 * none of our environment on, allows neither core dumps nor long files, and ties the browser's life to ours. The kernel forgets
 * who is to be killed with whom when a process changes its user, so the call that changes the user says it again.
 */
export async function writeLauncher(
  folder: RunFolder,
  program: string,
  limits: LaunchLimits,
  display: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { uid, home } = folder;
  const setpriv = programPath("setpriv");
  if (setpriv === null)
    throw new BrowserError("browser_missing", "A browser needs setpriv. Install util-linux 2.33 or later.");
  const own =
    uid === null
      ? []
      : [
          setpriv,
          `--reuid=${uid}`,
          `--regid=${uid}`,
          "--clear-groups",
          "--no-new-privs",
          "--pdeathsig=KILL",
          "--",
        ];
  const namespace = uid === null ? null : await findPidNamespace();
  const environment = {
    PATH: "/usr/bin:/bin",
    LANG: "C.UTF-8",
    HOME: home,
    TMPDIR: home,
    ...display,
  };
  const command = [
    "env",
    "-i",
    ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    setpriv,
    "--pdeathsig=KILL",
    "--",
    ...(namespace ?? []),
    ...own,
    program,
  ];
  const file = join(folder.path, "launch");
  await writeFile(file, script(folder, command, limits), { mode: 0o700, flag: "wx" });
  return file;
}

/** `--user-data-dir` is replaced: the driver makes that folder where it likes, and as a user that the browser is not. */
function script({ path, home }: RunFolder, command: readonly string[], limits: LaunchLimits): string {
  return `#!/bin/sh
read -r stat < /proc/$$/stat
read -r boot < /proc/sys/kernel/random/boot_id
set -f
rest=\${stat##*) }
n=0
for field in $rest; do n=$((n + 1)); [ $n -eq 20 ] && started=$field; done
printf '{"pid":%s,"startedAt":"%s/%s"}' $$ "$boot" "$started" > ${quote(join(path, PID_FILE))}
for given; do
  shift
  case $given in
    --user-data-dir=*) rmdir -- "\${given#*=}"; set -- "$@" ${quote(`--user-data-dir=${join(home, "profile")}`)} ;;
    *) set -- "$@" "$given" ;;
  esac
done
ulimit -c 0
ulimit -f ${Math.floor(FILE_BYTES_MAX / 512)}
ulimit -d ${Math.floor(limits.processBytes / 1_024)}
cd ${quote(home)} || exit 1
exec ${command.map(quote).join(" ")} "$@"
`;
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

let pidNamespace: Promise<readonly string[] | null> | null = null;

/** The command that gives a program a pid namespace: when its first process ends, the kernel ends all of them. Null: not here. */
async function findPidNamespace(): Promise<readonly string[] | null> {
  pidNamespace ??= (async () => {
    const unshare = programPath("unshare");
    if (unshare === null) return null;
    const command = [unshare, "--pid", "--fork", "--kill-child=KILL", "--"];
    return await run(unshare, [...command.slice(1), "true"], { timeout: PROBE_MS }).then(
      () => command,
      () => null,
    );
  })();
  return await pidNamespace;
}

function programPath(name: string): string | null {
  return SYSTEM_FOLDERS.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
