import { isJsonObject, type Json } from "./json.ts";

/** The part of a failed request's response that operators see. Secrets are removed. */
export interface ShownAnswer {
  readonly status: number;
  /** The final address, after redirects; only the names of its query. */
  readonly address: string;
  /** The target of a redirect that was not followed. */
  readonly leads_to: string | null;
  readonly content_type: string | null;
  /** The title of an HTML page. */
  readonly title: string | null;
  /** The first characters, of an HTML page its visible text; empty if the response is not text. */
  readonly begins: string;
}

/** The first word of its line in a step's log. */
const ANSWER_LINE = "answer";

/** A line of a step's log that contains a response. */
export const answerLine = (answer: ShownAnswer): string =>
  JSON.stringify({ message: ANSWER_LINE, ...answer });

/** Parses the output of `answerLine`; null: any other line. */
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

/** For a terminal: status, type and address, then the first characters. */
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
