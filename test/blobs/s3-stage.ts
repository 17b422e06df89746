import { S3Client } from "@aws-sdk/client-s3";
import type { S3Settings } from "#blobs/s3-failures.ts";

export const BUCKET = "latchkey-objects";

export const settingsFor = (endpoint: string, changed: Partial<S3Settings> = {}): S3Settings => ({
  bucket: BUCKET,
  prefix: "some/where/",
  region: "us-east-1",
  endpoint,
  publicEndpoint: null,
  pathStyle: true,
  ...changed,
});

export const clientOf = (endpoint: string): S3Client =>
  new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    requestChecksumCalculation: "WHEN_REQUIRED",
  });

/** The servers are fetched from Debian the first time. */
export const FETCH = { timeout: 600_000 };
