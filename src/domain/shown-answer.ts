import { isJsonObject, type Json } from "./json.ts";

/** What operators are shown of an answer that a request of a node or a login failed with. Secrets are taken out. */
export interface ShownAnswer {
  readonly status: number;
  /** Where it came from, after redirects; of a query the names alone. */
  readonly address: string;
  /** Where a redirect that was not followed leads. */
  readonly leads_to: string | null;
  readonly content_type: string | null;
  /** Of an HTML page. */
  readonly title: string | null;
  /** The first characters: of an HTML page those that people read; empty where the answer is no text. */
  readonly begins: string;
}

/** The first word of its line in a step's log. */
const ANSWER_LINE = "answer";

/** A line of a step's log that holds an answer. */
export const answerLine = (answer: ShownAnswer): string =>
  JSON.stringify({ message: ANSWER_LINE, ...answer });

/** What `answerLine` has written; null: the line is another one. */
export function readAnswerLine(line: Json): ShownAnswer | null {
  if (!isJsonObject(line) || line["message"] !== ANSWER_LINE || typeof line["status"] !== "number")
    return null;
  const textOf = (key: string): string | null => {
    const value = line[key];
    return typeof value === "string" ? value : null;
  };
  return {
    status: line["status"],
    address: textOf("address") ?? "",
    leads_to: textOf("leads_to"),
    content_type: textOf("content_type"),
    title: textOf("title"),
    begins: textOf("begins") ?? "",
  };
}

/** For a terminal: what it was and where it came from, then how it begins. */
export function describeAnswer(answer: ShownAnswer): readonly string[] {
  const { status, address, leads_to: leadsTo, content_type: type, title, begins } = answer;
  const about = [
    type === null ? [] : [type],
    title === null ? [] : [`title "${title}"`],
    leadsTo === null ? [] : [`redirects to ${leadsTo}`],
  ].flat();
  const head = `${status} from ${address}${about.length === 0 ? "" : ` (${about.join(", ")})`}`;
  return begins === "" ? [head] : [head, begins];
}
