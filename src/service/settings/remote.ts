import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Secret } from "#lib/secret.ts";
import { hasHome } from "./home.ts";
import { readPlainUrl, readSecret, type Checked, type Read, type Setting } from "./read-value.ts";

/** The service of another machine, for the command line. */
export interface RemoteSettings {
  /** Without a trailing slash; null: the command line works on this machine's installation. */
  readonly serviceUrl: string | null;
  readonly operatorToken: Secret | null;
  /** For `latchkey webhooks listen`. */
  readonly apiKey: Secret | null;
  /** The folder with what `latchkey login` keeps; null: this user has no home folder. */
  readonly configDir: string | null;
}

export const REMOTE_SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_URL",
    type: "URL",
    default: "unset: this machine's installation",
    description:
      "With LATCHKEY_TOKEN, the command line works on the service at this URL, over its operator API; docs/remote.md.",
  },
  {
    name: "LATCHKEY_TOKEN",
    type: "operator token",
    default: "unset",
    description: "Operator token of the command line for the service at LATCHKEY_URL, or `--url`.",
    isSecret: true,
  },
  {
    name: "LATCHKEY_TOKEN_FILE",
    type: "file",
    default: "unset",
    description: "File that holds the operator token, instead of LATCHKEY_TOKEN.",
  },
  {
    name: "LATCHKEY_CONFIG_DIR",
    type: "folder",
    default: "latchkey in XDG_CONFIG_HOME, or in ~/.config",
    description: "Folder in which `latchkey login` keeps its tokens, readable only by their owner.",
  },
  {
    name: "LATCHKEY_API_KEY",
    type: "API key",
    default: "unset",
    description:
      "API key with the scope `events`, with which `latchkey webhooks listen` reads an account's events.",
    isSecret: true,
  },
  {
    name: "LATCHKEY_API_KEY_FILE",
    type: "file",
    default: "unset",
    description: "File that holds the API key, instead of LATCHKEY_API_KEY.",
  },
];

export function readRemote(read: Read, cwd: string, checked: Checked, problems: string[]): RemoteSettings {
  return {
    serviceUrl: checked<string | null>(
      "LATCHKEY_URL",
      readPlainUrl,
      "an http or https URL without query",
      null,
    ),
    operatorToken: readSecret("LATCHKEY_TOKEN", "an operator token", { read, cwd, problems }),
    apiKey: readSecret("LATCHKEY_API_KEY", "an API key", { read, cwd, problems }),
    configDir: configDirOf(read, cwd),
  };
}

function configDirOf(read: Read, cwd: string): string | null {
  const named = read("LATCHKEY_CONFIG_DIR");
  if (named !== undefined) return resolve(cwd, named);
  const base = read("XDG_CONFIG_HOME") ?? (hasHome() ? join(homedir(), ".config") : null);
  return base === null ? null : join(base, "latchkey");
}
