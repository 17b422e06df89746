import { parentPort, workerData } from "node:worker_threads";
import { freezeIntrinsics } from "#lib/freeze-intrinsics.ts";
import { ownThreadId } from "#lib/thread-priority.ts";
import { PARSE_THREAD, type ParseJob, type ParseReply, type ParseThreadData } from "./parse-jobs.ts";

/** Each parser is loaded when it is first needed: the one for PDFs alone has 1.7 MB. After that, the intrinsics are frozen. */
async function parse(job: ParseJob): Promise<ParseReply> {
  if (job.format === "xlsx") {
    const { parseSheet } = await import("./parse-sheet.ts");
    freezeOnce();
    return await parseSheet(job);
  }
  if (job.format === "pdf") {
    const { loadPdfReader, parsePdf } = await import("./parse-pdf.ts");
    await loadPdfReader();
    freezeOnce();
    return await parsePdf(job);
  }
  if (!("columns" in job)) {
    const { parseCalendar } = await import("./parse-calendar.ts");
    freezeOnce();
    return parseCalendar(job);
  }
  const { parseMarkup } = await import("./parse-markup.ts");
  freezeOnce();
  return parseMarkup(job);
}

let isFrozen = false;

function freezeOnce(): void {
  if (!isFrozen) freezeIntrinsics();
  isFrozen = true;
}

async function answer(job: ParseJob): Promise<ParseReply> {
  try {
    return await parse(job);
  } catch (error) {
    if (error instanceof RangeError) return { problem: "is nested too deeply" };
    return { problem: "could not be read" };
  }
}

const data = workerData as Partial<ParseThreadData> | null;
if (data?.threadOf === PARSE_THREAD) {
  if (data.threadId) Atomics.store(data.threadId, 0, ownThreadId() ?? 0);
  parentPort?.on("message", (job: ParseJob) => {
    void answer(job).then((reply) => parentPort?.postMessage(reply));
  });
}
