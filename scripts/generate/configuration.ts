import { SETTINGS } from "#service/settings/settings.ts";

/** `docs/configuration.md`, from the table of settings. */
export async function configurationPage(): Promise<string> {
  const rows = SETTINGS.map(
    ({ name, type, default: standard, description }) =>
      `| \`${name}\` | ${type.replaceAll("|", "\\|")} | ${standard} | ${description} |`,
  );
  return [
    "# Configuration",
    "",
    "Every setting is an environment variable. An empty variable counts as unset. If a `LATCHKEY_…` variable is invalid or unknown, the",
    "start fails and lists every problem. This page is generated from `src/service/settings/settings.ts`.",
    "",
    "Provide secrets as files, with the settings that end in `_FILE`, readable only by the service's user. A variable works, too, and is",
    "removed from the environment once it has been read, so that no child process inherits it and no code reads it later. But",
    "the kernel keeps the initial environment of a process: this user and root can read it in `/proc/<pid>/environ`, and",
    "container engines show it to anyone who may inspect the container.",
    "",
    "| setting | type | default | description |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
