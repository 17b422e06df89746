import { extractText, getDocumentProxy, getResolvedPDFJS } from "unpdf";
import { compileRows, groupsOf } from "./match-rows.ts";
import { REPLY_CHARACTERS_MAX, type Cell, type ParseReply, type PdfJob } from "./parse-jobs.ts";

const PAGES_MAX = 5_000;

/** Loads the reader, which its wrapper loads lazily otherwise, because it installs polyfills. */
export async function loadPdfReader(): Promise<void> {
  await getResolvedPDFJS();
}

/** The text of every page or, with `rows`, the matches of its named groups. Only the parse thread may call it. */
export async function parsePdf(job: PdfJob): Promise<ParseReply> {
  const read = await readPages(job.bytes);
  if ("problem" in read) return read;
  const { pages } = read;
  if (pages.reduce((sum, page) => sum + page.length, 0) > REPLY_CHARACTERS_MAX)
    return { problem: `produces more than ${REPLY_CHARACTERS_MAX} characters` };
  if (job.rows === null)
    return { names: ["page", "text"], rows: pages.map((text, index) => [index + 1, text]) };
  const pattern = compileRows(job.rows);
  const names = groupsOf(pattern);
  const rows: Cell[][] = [];
  for (const page of pages) {
    const matcher = pattern.matcher(page);
    while (matcher.find()) rows.push(names.map((name) => matcher.group(name)));
  }
  return { names, rows };
}

async function readPages(
  bytes: Uint8Array,
): Promise<{ readonly pages: readonly string[] } | { readonly problem: string }> {
  try {
    // `verbosity`: the reader must not print anything.
    const document = await getDocumentProxy(bytes, { verbosity: 0 });
    if (document.numPages > PAGES_MAX) return { problem: `has more than ${PAGES_MAX} pages` };
    const { text } = await extractText(document, { mergePages: false });
    await document.loadingTask.destroy();
    return { pages: text };
  } catch (error) {
    const name = error instanceof Error ? error.name : "";
    if (name === "PasswordException") return { problem: "is encrypted; remove its password" };
    return { problem: "is not a PDF, or is damaged" };
  }
}
