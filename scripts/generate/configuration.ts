import { SETTINGS } from "#root/config.ts";

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
    "start with every problem listed. This page is generated from `src/config.ts`.",
    "",
    "| setting | type | default | what it is |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
