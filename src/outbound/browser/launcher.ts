import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { BrowserError } from "./browser-error.ts";
import { requireOwnNetwork } from "./own-network.ts";
import { PID_FILE, type RunFolder } from "./run-folder.ts";
import { ENVIRONMENT, programPath } from "./system-programs.ts";

const run = promisify(execFile);

const PROBE_MS = 10_000;
/** The longest file that a browser may write, in bytes. */
const FILE_BYTES_MAX = 1_073_741_824;

export interface LaunchTerms {
  /** The most data that one process may have, in bytes. */
  readonly processBytes: number;
  /** Whether it has a network of its own. */
  readonly hasOwnNetwork: boolean;
}

/** All that a browser has of an environment: nothing of ours. */
export const environmentOf = (
  { home }: RunFolder,
  display: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  ...ENVIRONMENT,
  HOME: home,
  TMPDIR: home,
  ...display,
});

/**
 * Writes the file that the driver starts in place of Chromium, because the driver can't change the user of what it starts. It
 * allows neither core dumps nor long files, and ties the browser's life to ours. The kernel forgets who is to be killed with whom
 * when a process changes its user, so the call that changes the user says it again.
 */
export async function writeLauncher(folder: RunFolder, program: string, terms: LaunchTerms): Promise<string> {
  const { uid } = folder;
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
  if (terms.hasOwnNetwork) await requireOwnNetwork();
  const namespaces = [
    ...(terms.hasOwnNetwork ? ["--net"] : []),
    ...(uid !== null && (await mayUnsharePids()) ? PID_NAMESPACE : []),
  ];
  const apart = namespaces.length === 0 ? [] : [programPath("unshare") ?? "unshare", ...namespaces, "--"];
  const command = [setpriv, "--pdeathsig=KILL", "--", ...apart, ...own, program];
  const file = join(folder.path, "launch");
  await writeFile(file, script(folder, command, terms), { mode: 0o700, flag: "wx" });
  return file;
}

/** `--user-data-dir` is replaced: the driver makes that folder where it likes, and as a user that the browser is not. */
function script({ path, home }: RunFolder, command: readonly string[], terms: LaunchTerms): string {
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
ulimit -d ${Math.floor(terms.processBytes / 1_024)}
cd ${quote(home)} || exit 1
exec ${command.map(quote).join(" ")} "$@"
`;
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** When the first process of a pid namespace ends, the kernel ends all of them. */
const PID_NAMESPACE = ["--pid", "--fork", "--kill-child=KILL"];

let unsharing: Promise<boolean> | null = null;

async function mayUnsharePids(): Promise<boolean> {
  unsharing ??= (async () => {
    const unshare = programPath("unshare");
    if (unshare === null) return false;
    return await run(unshare, [...PID_NAMESPACE, "--", "true"], { timeout: PROBE_MS }).then(
      () => true,
      () => false,
    );
  })();
  return await unsharing;
}
