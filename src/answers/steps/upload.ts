import { defineStep, onElement } from "#answers/browser/define-step.ts";
import {
  describeLocator,
  locatorFindings,
  locatorPart,
  type LocatorConfig,
} from "#answers/browser/locator.ts";
import type { JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";

interface UploadConfig extends LocatorConfig {
  readonly file: string;
}

export const upload = defineStep<UploadConfig>({
  kind: "upload",
  description: "Chooses a file for a file field: the output of another node, such as an input.",
  only: "node",
  example: "- upload: { label: Statement, file: year }",
  more: "`file` is a node's id, as in requests of `http` nodes. Texts and JSON count as files, too. At most 20 MiB.",
  schema: (terms) =>
    onElement(terms, {
      file: Type.String({ minLength: 1, description: "The id of the node whose output is the file." }),
    }),
  check: (config, path) => locatorFindings(config as unknown as JsonObject, path),
  describe: (config) => describeLocator(locatorPart(config as never)),
  async run(run, config) {
    const field = await run.find(locatorPart(config as never));
    await field.setInputFiles(await run.fileOf(config.file), { timeout: run.timeoutMs });
  },
});
