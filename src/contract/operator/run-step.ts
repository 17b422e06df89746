import { Type } from "#lib/type.ts";
import { closed, count, oneOf, orNull, text, time } from "./fields.ts";

/** An entry of a run's journal, as operators see it. */
export const runStep = closed(
  {
    node: text("The node's id."),
    status: oneOf(
      ["started", "done", "failed", "skipped"],
      "Its state; `skipped`: its `when` is not true, so nothing was sent.",
    ),
    attempts: count("Number of attempts."),
    started_at: time("When it started for the first time."),
    ended_at: orNull(time("When it ended.")),
    duration_ms: orNull(count("How long it took, with the time that it waited.")),
    output: orNull(text("The kind of its output: records, text, json, file or absent.")),
    records_total: orNull(count("Records in its output.")),
    records_valid: orNull(count("Records without errors.")),
    records_usual: orNull(
      count("The median number of records of this node in the last completed runs; `null`: there are none."),
    ),
    turns_begun: orNull(count("For a loop: records that it has begun.")),
    turns_total: orNull(count("For a loop: all its records, if known.")),
    error: orNull(text("Why it failed, redacted.")),
    answer: orNull(
      closed(
        {
          status: count("Its status."),
          address: text("Its URL after redirects; of the query only the names."),
          leads_to: orNull(text("The location of a redirect that was not followed.")),
          content_type: orNull(text("Its content type.")),
          title: orNull(text("The title of an HTML page.")),
          begins: text("Its first 500 characters; of an HTML page only the visible text."),
        },
        { title: "ShownAnswer" },
      ),
    ),
    evidence: Type.Array(
      closed(
        {
          reason: oneOf(["failed", "done", "screenshot"], "Why the page was looked at."),
          step: text("The step of the browser, in the document's words."),
          url: orNull(text("The page's URL without its query.")),
          outline: text("What assistive technology sees, a line for each element; no values of fields."),
          console: Type.Array(text("One of the last errors in the page's console.")),
          refused: Type.Array(
            closed({ origin: text("An origin."), count: count("Requests to it that were refused.") }),
          ),
          has_picture: Type.Boolean({
            description: "Whether there is a picture, which has the index of this item.",
          }),
        },
        { title: "PageEvidence" },
      ),
      {
        description:
          "What the pages of a browser showed, redacted; empty for roles that may not see results.",
      },
    ),
    log: Type.Array(Type.Unknown(), { description: "Its log, redacted." }),
  },
  { title: "RunStep" },
);
