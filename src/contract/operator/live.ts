import { limits } from "#domain/limits.ts";
import { Type } from "#lib/type.ts";
import { closed, count, missing, orNull, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Runs");

export const watchRunPage = defineOperation({
  id: "watchRunPage",
  method: "post",
  path: "/runs/{runId}/live",
  summary: "Say that you watch the page of a run, and read what is shown of it",
  description: `While a node with a browser does its steps, the run's worker takes a picture of its page each second, as long as somebody watches. \`picture\` is \`null\` while no page of the run is open, and before the first picture. Watching counts for ${limits.livePictureWatchedMs / 1_000} s; repeat it each second. Logins are never shown.`,
  permission: "run.results",
  answer: closed(
    {
      picture: orNull(
        closed({
          step: text("The step that was in progress, in the document's words."),
          taken_at: time("When the last picture was taken."),
          age_seconds: count("How long ago that was."),
        }),
      ),
    },
    { title: "LivePage" },
  ),
  failures: [missing("run")],
});

export const readLivePicture = defineOperation({
  id: "readLivePicture",
  method: "get",
  path: "/runs/{runId}/live/picture",
  summary: "Read the last picture of the page of a run",
  description: `A PNG of at most ${limits.livePictureBytesMax / 1_000} kB. Fields, frames and everything with a secret are covered.`,
  permission: "run.results",
  query: closed({
    taken_at: Type.Optional(
      Type.String({
        maxLength: 40,
        description: "Ignored: with the picture's `taken_at` each one has an address of its own.",
      }),
    ),
  }),
  streams: "image/png",
  failures: [missing("run or picture")],
});
