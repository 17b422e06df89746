import { hostname, userInfo } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { beginDeviceSignIn, pollDeviceSignIn } from "#contract/operator/devices.ts";
import { endOwnToken } from "#contract/operator/tokens.ts";
import { Secret } from "#lib/secret.ts";
import type { Composition } from "./composition.ts";
import { findLogin, forgetLogin, keepLogin } from "./kept-logins.ts";
import { CommandFailed, EXIT_CODES, plain, print, tell } from "./output.ts";
import { remoteService, type RemoteService } from "./remote.ts";

/** An operator's own sign-in of the command line, by the dashboard. */
export function addLogin(program: Command, composition: Composition): void {
  program
    .command("login")
    .description("sign in to the service at --url, by its dashboard, for the commands that work remotely")
    .option("--name <label>", "what the dashboard shows, and the token's name (default: user@host)")
    .addHelpText(
      "after",
      "\nIt shows a code and an address: open the address in any browser, compare the code, and choose role and lifetime." +
        "\nThe token is kept in logins.json of LATCHKEY_CONFIG_DIR, readable only by you; `latchkey logout` revokes it." +
        "\n\nExample:\n  latchkey login --url https://connect.example.com",
    )
    .action(async ({ name }: { name?: string }) => await login(composition, name ?? ownName()));
}

export function addLogout(program: Command, composition: Composition): void {
  program
    .command("logout")
    .description("revoke the token of `latchkey login`, and forget it")
    .addHelpText("after", "\nExample:\n  latchkey logout --url https://connect.example.com")
    .action(async () => await logout(composition));
}

const NAME_CHARACTERS_MAX = 255;

function ownName(): string {
  let user = "somebody";
  try {
    user = userInfo().username;
  } catch {
    // A uid without a user, as in some containers.
  }
  return `${user}@${hostname()}`.slice(0, NAME_CHARACTERS_MAX);
}

function folderOf(composition: Composition): string {
  const { configDir } = composition.config();
  if (configDir !== null) return configDir;
  throw new CommandFailed(
    "This user has no home folder. LATCHKEY_CONFIG_DIR names the folder for logins.",
    EXIT_CODES.usage,
  );
}

async function login(composition: Composition, name: string): Promise<void> {
  const folder = folderOf(composition);
  const url = composition.serviceUrl();
  if (url === null)
    throw new CommandFailed(
      "Name the service: latchkey login --url https://connect.example.com, or set LATCHKEY_URL.",
      EXIT_CODES.usage,
    );
  await withClient(composition, { url, token: null }, async (service) => {
    const begun = await service.call(beginDeviceSignIn, { body: { name } });
    tell(`Open ${plain(begun.verification_url_complete)} in a browser, and compare the code there:`);
    tell(`\n    ${plain(begun.user_code)}\n`);
    tell(`Waiting until it is approved, at most ${Math.ceil(begun.expires_in_seconds / 60)} minutes.`);
    const { token, operator, role, expires_at: until } = await waitForGrant(service, begun);
    keepLogin(folder, { url, token: new Secret(token) });
    print(`Signed in to ${url} as ${plain(operator)} (${role}), until ${until}.`);
  });
}

async function withClient(
  composition: Composition,
  { url, token }: { readonly url: string; readonly token: Secret | null },
  work: (service: RemoteService) => Promise<void>,
): Promise<void> {
  const client = await composition.openClientOf(url, token);
  try {
    await work(remoteService(client));
  } finally {
    await client.close();
  }
}

/** Throws CommandFailed when the operator refuses, or nobody has approved in time. */
async function waitForGrant(
  service: RemoteService,
  { device_code, interval_seconds }: { readonly device_code: string; readonly interval_seconds: number },
) {
  for (;;) {
    await sleep(interval_seconds * 1_000);
    const { status, grant } = await service.call(pollDeviceSignIn, { body: { device_code } });
    if (grant !== null) return grant;
    if (status === "denied") throw new CommandFailed("The sign-in was refused in the dashboard.");
  }
}

async function logout(composition: Composition): Promise<void> {
  const folder = folderOf(composition);
  composition.useLogin();
  const url = composition.serviceUrl();
  const kept = url === null ? null : findLogin(folder, url);
  if (url === null || kept === null)
    throw new CommandFailed(
      `There is no login${url === null ? "" : ` at ${url}`}. Name the service with --url, if it is another one.`,
    );
  // Forgotten even if it can't be revoked, because it has ended or the service is gone.
  try {
    await withClient(composition, kept, async (service) => await service.call(endOwnToken));
    print(`Signed out of ${url}: the token was revoked.`);
  } finally {
    forgetLogin(folder, url);
  }
}
