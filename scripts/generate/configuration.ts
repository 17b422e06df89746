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
    "Every setting is an environment variable. An empty one counts as unset; a wrong or unknown `LATCHKEY_…` one stops the",
    "start with every problem listed. This page is generated from `src/service/settings/settings.ts`.",
    "",
    "Give secrets as files, by the settings that end in `_FILE`, readable for the service's user alone. A variable works too, and is",
    "removed from the environment as soon as it has been read, so that no child process inherits it and no code reads it later. But",
    "the kernel keeps the environment that a process was started with: this user, and root, read it in `/proc/<pid>/environ`, and",
    "container engines show it to anyone who may inspect the container.",
    "",
    "| setting | type | default | what it is |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
