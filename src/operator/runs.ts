import { cancelRunOf, purgeRunOf } from "#actions/operators/end-runs.ts";
import { groupFailures } from "#actions/operators/group-failures.ts";
import * as runs from "#actions/operators/list-runs.ts";
import { getRunGraph } from "#actions/operators/get-run-graph.ts";
import * as nodes from "#actions/operators/run-nodes.ts";
import { searchAll } from "#actions/operators/search.ts";
import * as live from "#actions/operators/watch-run-page.ts";
import * as again from "#actions/operators/run-again.ts";
import * as results from "#actions/operators/get-result.ts";
import { attachment } from "#domain/download.ts";
import { mayDo } from "#domain/operator.ts";
import type * as contract from "#contract/operator/runs.ts";
import type * as ofLive from "#contract/operator/live.ts";
import type * as ofNodes from "#contract/operator/nodes.ts";
import type * as ofFinding from "#contract/operator/finding.ts";
import type { Handler } from "./context.ts";

export const getRuns: Handler<typeof contract.listRuns> = async ({ services, limit }, { query }) =>
  await runs.listRuns(services.db, query, limit);

export const getFailures: Handler<typeof ofFinding.listFailures> = async (
  { services, limit },
  { query },
) => ({
  items: await groupFailures(services.db, query, limit),
});

export const getSearch: Handler<typeof ofFinding.search> = async ({ services, caller, limit }, { query }) =>
  await searchAll(services.db, caller.role, query.q, limit);

export const getRun: Handler<typeof contract.readRun> = async ({ services, caller }, { params }) =>
  await runs.getRun(services.db, params["runId"] ?? "", mayDo(caller.role, "run.results"));

export const postCancel: Handler<typeof contract.cancelRun> = async ({ services, caller }, { params }) =>
  await cancelRunOf(services, caller, params["runId"] ?? "");

export const postPurge: Handler<typeof contract.purgeRun> = async ({ services, caller }, { params }) =>
  await purgeRunOf(services, caller, params["runId"] ?? "");

export const getAgain: Handler<typeof contract.readRunAgain> = async ({ services }, { params }) =>
  await again.previewRerun(services.db, params["runId"] ?? "");

export const postAgain: Handler<typeof contract.runAgain> = async ({ services, caller }, { params, body }) =>
  await again.rerun(services, caller, params["runId"] ?? "", body);

export const getGraph: Handler<typeof contract.readRunGraph> = async ({ services }, { params }) =>
  await getRunGraph(services.db, params["runId"] ?? "");

export const getComparison: Handler<typeof ofNodes.compareRun> = async ({ services }, { params }) =>
  await nodes.compareRun(services.db, params["runId"] ?? "");

export const getSample: Handler<typeof ofNodes.readNodeSample> = async (
  { services, reply },
  { params, query },
) => {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  const named = { run: params["runId"] ?? "", node: params["node"] ?? "" };
  return await nodes.getNodeSample(services, named, query, gone.signal);
};

export const getInput: Handler<typeof ofNodes.readRunInput> = async ({ services }, { params }) =>
  await nodes.getRunInput(services, { run: params["runId"] ?? "", refKey: params["refKey"] ?? "" });

const namedIn = (params: Readonly<Record<string, string>>) => ({
  run: params["runId"] ?? "",
  key: params["resultKey"] ?? "",
});

export const getResultRecords: Handler<typeof contract.listResultRecords> = async (
  { services, reply },
  { params, query },
) => {
  // When a person scrolls on, the browser aborts requests for records that are no longer visible.
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return await results.getResult(services, namedIn(params), query, gone.signal);
};

export const getResultFile: Handler<typeof contract.downloadResult> = async (
  { services, reply },
  { params, query },
) => {
  const { filename, contentType, bytes } = await results.downloadResult(services, namedIn(params), query);
  reply.headers({ "Content-Type": contentType, "Content-Disposition": attachment(filename) });
  return bytes;
};

export const postLive: Handler<typeof ofLive.watchRunPage> = async ({ services }, { params }) =>
  await live.watchRunPage(services, params["runId"] ?? "");

export const getLivePicture: Handler<typeof ofLive.readLivePicture> = async ({ services }, { params }) =>
  await live.openLivePicture(services, params["runId"] ?? "");

export const getPicture: Handler<typeof contract.readPicture> = async ({ services }, { params }) =>
  await runs.readPicture(services, {
    run: params["runId"] ?? "",
    node: params["node"] ?? "",
    index: params["index"] ?? "",
  });
