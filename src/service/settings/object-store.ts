import type { S3Settings } from "#blobs/s3-failures.ts";
import { oneOf, readPlainUrl, type Checked, type Setting } from "./read-value.ts";

export const OBJECT_STORE_SETTINGS: readonly Setting[] = [
  {
    name: "LATCHKEY_S3_BUCKET",
    type: "bucket",
    default: "unset: the folder objects in the data folder",
    description:
      "Bucket of S3 or a compatible store, for inputs, record sets and results; docs/objects.md. Credentials come from the AWS SDK.",
  },
  {
    name: "LATCHKEY_S3_PREFIX",
    type: "path",
    default: "empty",
    description: "Prefix of every object's key, so that a bucket can be shared.",
  },
  {
    name: "LATCHKEY_S3_REGION",
    type: "region",
    default: "the AWS SDK's own",
    description: "Region of the bucket.",
  },
  {
    name: "LATCHKEY_S3_ENDPOINT",
    type: "URL",
    default: "AWS",
    description: "Address of the store, if it is not AWS.",
  },
  {
    name: "LATCHKEY_S3_PUBLIC_ENDPOINT",
    type: "URL",
    default: "LATCHKEY_S3_ENDPOINT",
    description: "Address at which callers reach the store for downloads, if it differs.",
  },
  {
    name: "LATCHKEY_S3_PATH_STYLE",
    type: "true | false",
    default: "true with an endpoint, else false",
    description: "Whether the bucket is part of a URL's path instead of its host name.",
  },
];

/** null: the folder. */
export function readObjectStore(
  read: (name: string) => string | undefined,
  checked: Checked,
  problems: string[],
): S3Settings | null {
  const bucket = checked<string | null>(
    "LATCHKEY_S3_BUCKET",
    (text) => (/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(text) ? text : undefined),
    "the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
    null,
  );
  const prefix = checked("LATCHKEY_S3_PREFIX", readPrefix, "letters, digits, _, - and . between slashes", "");
  const endpoint = checked<string | null>("LATCHKEY_S3_ENDPOINT", readPlainUrl, HTTP_URL, null);
  const settings = {
    prefix,
    region: checked<string | null>(
      "LATCHKEY_S3_REGION",
      (text) => (/^[a-z0-9-]{1,40}$/.test(text) ? text : undefined),
      "a region such as eu-central-1",
      null,
    ),
    endpoint,
    publicEndpoint: checked<string | null>("LATCHKEY_S3_PUBLIC_ENDPOINT", readPlainUrl, HTTP_URL, null),
    pathStyle:
      checked<string>(
        "LATCHKEY_S3_PATH_STYLE",
        oneOf(["true", "false"]),
        "true or false",
        String(endpoint !== null),
      ) === "true",
  };
  if (bucket !== null) return { bucket, ...settings };
  const useless = OBJECT_STORE_SETTINGS.map(({ name }) => name).filter((name) => read(name) !== undefined);
  // An invalid bucket has been reported already.
  for (const name of useless.filter((each) => each !== "LATCHKEY_S3_BUCKET"))
    problems.push(`${name} has no effect unless LATCHKEY_S3_BUCKET is set.`);
  return null;
}

const HTTP_URL = "an http or https URL without user, query or fragment";

function readPrefix(text: string): string | undefined {
  const parts = text.split("/").filter((part) => part !== "");
  const isGood = text.length <= 200 && parts.every((part) => /^[\w.-]+$/.test(part) && !/^\.+$/.test(part));
  return isGood ? parts.map((part) => `${part}/`).join("") : undefined;
}
