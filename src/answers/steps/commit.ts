import { defineStep } from "#answers/browser/define-step.ts";
import { Type } from "#lib/type.ts";

export const commit = defineStep<true>({
  kind: "commit",
  description: "In a node that writes: from here on, nothing is done twice.",
  only: "node",
  example: `- fill: { label: Year, with: "{{ $inputs.year }}" }
- commit: true
- click: { role: button, name: Send }
- expect: { visible: { text: Thank you }, rejected: { text: Not accepted } }`,
  more: "Put it before the step that submits. What fails before it is done again like a read. After it, a failure means that the write may have happened: it is looked up by the node's `verify`, or a person decides. Without a `commit`, all steps count as the write.",
  schema: () =>
    Type.Literal(true, { description: "In a node that writes: from here on, nothing is done twice." }),
  run: async (run) => await run.commit(),
});
