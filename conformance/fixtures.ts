import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where the fixture target listens unless told otherwise, and what the documents in `fixtures/` name. */
export const DEFAULT_TARGET_ORIGIN = "http://127.0.0.1:4700";

const FOLDER = fileURLToPath(new URL("fixtures/", import.meta.url));

/** All fixture documents as one YAML text, with the target's origin put in. */
export function fixtureDocuments(targetOrigin: string): string {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".yaml"))
    .toSorted()
    .map((name) => readFileSync(`${FOLDER}${name}`, "utf8").trimEnd())
    .join("\n---\n")
    .replaceAll(DEFAULT_TARGET_ORIGIN, targetOrigin)
    .concat("\n");
}

/** The Blueprint that the limited key may use; all others of its account it may not. */
export const LIMITED_BLUEPRINT = "conformance-open";

/** The origin of an option's text. Throws a RangeError with the remedy. */
export function readTargetOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.protocol !== "http:" || url.origin !== text.replace(/\/$/, "")) {
    throw new RangeError(`--target-origin must be an http origin such as ${DEFAULT_TARGET_ORIGIN}.`);
  }
  return url.origin;
}
