import type { Plant } from "./plants-of-accounts.ts";
import type { Left } from "./workload.ts";

const pictureOf = (run: string): string =>
  `insert into live_picture (run_id, watched_until, step, png, taken_at) values ('${run}', now(), 'steps[0]', '\\x00', now())`;

/** Pictures of pages that are left of runs that have ended. */
export const ofLivePictures = ({ purged, failed }: Left): readonly Plant[] => [
  { check: "run_purged_data", place: `run ${purged}`, sql: [pictureOf(purged)] },
  {
    check: "run_shown_after_end",
    place: `run ${failed}`,
    sql: [
      "insert into worker (id, lock_key, hostname, pid, started_at) values ('wrk_x', 1, 'h', 1, app_now() - interval '2h')",
      `update run set ended_at = ended_at - interval '2 hours', started_at = null where id = '${failed}'`,
      `update run_step set started_at = started_at - interval '3 hours' where run_id = '${failed}'`,
      pictureOf(failed),
    ],
  },
];
