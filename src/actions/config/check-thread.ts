import { parentPort, workerData } from "node:worker_threads";
import { limits } from "#domain/limits.ts";
import type { ConfigProblem } from "#domain/config-problem.ts";
import { addNodeFiles } from "#nodes/registry.ts";
import {
  CHECK_THREAD,
  checkSources,
  type CheckedSources,
  type CheckJob,
  type CheckThreadData,
} from "./check-sources.ts";

/** Nobody reads more of them, and each adds a line to the answer. */
const PROBLEMS_MAX = 1_000;

/** Limits the size of the result, which the main thread processes further. */
function answer({ sources, known }: CheckJob): CheckedSources {
  const { checked, problems } = checkSources(sources, known);
  let characters = 0;
  for (const { document } of checked) characters += JSON.stringify(document).length;
  const [first] = sources;
  const at = { file: first?.file ?? "", line: 1, column: 1, path: "" };
  if (characters > limits.configExpandedCharactersMax) {
    const message = `the documents expand to more than ${limits.configExpandedCharactersMax} characters; use fewer aliases, or split the documents`;
    return { checked: [], problems: [{ ...at, message }] };
  }
  const left = problems.length - PROBLEMS_MAX;
  const more: ConfigProblem[] =
    left > 0 ? [{ ...at, message: `there are ${left} more problems; fix these first` }] : [];
  return { checked, problems: [...problems.slice(0, PROBLEMS_MAX), ...more] };
}

const data = workerData as Partial<CheckThreadData> | null;
if (data?.threadOf === CHECK_THREAD) {
  // Reports when its modules are loaded, because loading must not count towards a check's time limit.
  void addNodeFiles(data.nodeFiles ?? []).then(() => {
    parentPort?.on("message", (job: CheckJob) => parentPort?.postMessage(answer(job)));
    parentPort?.postMessage("ready");
  });
}
