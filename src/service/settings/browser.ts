import { availableParallelism, totalmem } from "node:os";
import type { BrowserSettings } from "#outbound/browser/browsers.ts";
import { limits } from "#domain/limits.ts";
import { oneOf, type Checked, type Setting } from "./read-value.ts";

const MEBIBYTE = 1_048_576;
/** The users of systemd's range for services without a name. */
const UIDS = { first: 61_184, last: 65_519 };
/** The last user id that Linux has. */
const UID_MAX = 4_294_967_293;

export const BROWSER_SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_BROWSER",
    type: "file",
    default: "chromium-headless-shell or chromium in /usr/bin, else the one that Playwright has installed",
    description: "Chromium for logins and nodes of type `browser`.",
  },
  {
    name: "LATCHKEY_BROWSERS",
    type: "1 to 100",
    default: "half the cores, or as many as the memory has room for",
    description:
      "Browsers that one worker process runs at once. Further runs wait for one. By default 1 GiB of the machine's memory, or of its container's limit, is left for the worker.",
  },
  {
    name: "LATCHKEY_BROWSER_MEMORY_MB",
    type: "256 to 65536",
    default: String(limits.browserMemoryBytes / MEBIBYTE),
    description:
      "Most memory, in MiB, that the processes of one browser may have together. Above it, the browser is ended and its run fails.",
  },
  {
    name: "LATCHKEY_BROWSER_SANDBOX",
    type: "on | off",
    default: "on",
    description:
      "Chromium's own sandbox. off: pages run without it, where the machine or the container allows no user namespaces.",
  },
  {
    name: "LATCHKEY_BROWSER_NETWORK",
    type: "host | own",
    default: "host",
    description:
      "own: each browser has a network of its own, in which there is nothing but the egress gate. For a worker that runs as root, with unshare, nsenter and ip.",
  },
  {
    name: "LATCHKEY_BROWSER_UIDS",
    type: "FIRST-LAST",
    default: `${UIDS.first}-${UIDS.last}`,
    description:
      "For a worker that runs as root: the user ids of its browsers, one for each that runs. Nothing else may run as one of them.",
  },
];

/** What this process may use. */
interface Machine {
  readonly cores: number;
  readonly memoryBytes: number;
}

/** With the limits of a container. */
export const readMachine = (): Machine => ({
  cores: availableParallelism(),
  // 0 where the limit is unknown.
  memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Infinity),
});

/** What a worker needs besides its browsers: docs/deploy.md#memory. */
const WORKER_BYTES = 1_024 * MEBIBYTE;

/** How browsers are found and limited. */
export function readBrowser(checked: Checked, machine: Machine = readMachine()): BrowserSettings {
  const memory = checked(
    "LATCHKEY_BROWSER_MEMORY_MB",
    whole(256, 65_536),
    "a number of MiB from 256 to 65536",
    limits.browserMemoryBytes / MEBIBYTE,
  );
  return {
    program: checked("LATCHKEY_BROWSER", absolute, "the absolute path of a program", null),
    max: checked(
      "LATCHKEY_BROWSERS",
      whole(1, BROWSERS_MAX),
      `a number from 1 to ${BROWSERS_MAX}`,
      browsersFor(machine, memory * MEBIBYTE),
    ),
    memoryBytes: memory * MEBIBYTE,
    sandbox: checked("LATCHKEY_BROWSER_SANDBOX", oneOf(["on", "off"]), "on or off", "on") === "on",
    network: checked("LATCHKEY_BROWSER_NETWORK", oneOf(["host", "own"]), "host or own", "host"),
    uids: checked("LATCHKEY_BROWSER_UIDS", uidRange, "a range of user ids like 61184-65519", {
      first: UIDS.first,
      count: UIDS.last - UIDS.first + 1,
    }),
  };
}

const BROWSERS_MAX = 100;

function browsersFor({ cores, memoryBytes }: Machine, browserBytes: number): number {
  const byMemory = Math.floor((memoryBytes - WORKER_BYTES) / browserBytes);
  return Math.min(BROWSERS_MAX, Math.max(1, Math.min(Math.floor(cores / 2), byMemory)));
}

const DISPLAY_VARIABLES = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR"];

/** What a browser with a window needs of the environment; null: there is no display. */
export function readDisplay(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> | null {
  if (!environment["DISPLAY"] && !environment["WAYLAND_DISPLAY"]) return null;
  return Object.fromEntries(
    DISPLAY_VARIABLES.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

const whole = (least: number, most: number) => (text: string) =>
  /^\d{1,6}$/.test(text) && Number(text) >= least && Number(text) <= most ? Number(text) : undefined;

const absolute = (text: string): string | undefined => (text.startsWith("/") ? text : undefined);

/** Never root. */
function uidRange(text: string): BrowserSettings["uids"] | undefined {
  const [, first = "", last = ""] = /^(\d{1,10})-(\d{1,10})$/.exec(text) ?? [];
  const count = Number(last) - Number(first) + 1;
  return Number(first) >= 1 && count >= 1 && Number(last) <= UID_MAX
    ? { first: Number(first), count }
    : undefined;
}
