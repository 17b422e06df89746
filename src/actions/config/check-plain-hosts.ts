import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import { texts, type JsonObject } from "#domain/json.ts";
import { isPlainPublic } from "#outbound/plain-http.ts";

/** `hosts` of a strategy or a Blueprint over public, unencrypted HTTP: only with `insecure: true` on the document. */
export function checkPlainHosts({ hosts, insecure }: JsonObject): readonly ConfigFinding[] {
  if (insecure === true || !Array.isArray(hosts)) return [];
  return hosts.flatMap((host, index) => {
    if (typeof host !== "string" || !isPlainPublic(host)) return [];
    const message =
      `${quote(host)} is public and not encrypted: anyone on the network path can read and change requests; use https://, or put ` +
      "`insecure: true` into the document if the target has no https";
    return [{ path: ["hosts", index], message }];
  });
}

/** The hosts of a document, new or current, that are reached over public, unencrypted HTTP. */
export function plainHosts(document: JsonObject): readonly string[] {
  return texts(document["hosts"]).filter(isPlainPublic);
}
