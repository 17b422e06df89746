import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { Busboy, type BusboyHeaders } from "@fastify/busboy";
import type { FastifyRequest } from "fastify";
import { stageUpload } from "#actions/stage-upload.ts";
import type { Services } from "#actions/services.ts";
import type { PartPrint } from "#domain/idempotency.ts";
import { limits } from "#domain/limits.ts";
import { invalidField, Problem } from "#domain/problem.ts";
import type { BodyValue } from "#domain/trigger-routing.ts";
import { malformed, tooLarge, type ReadBody } from "./read-body.ts";

interface Part {
  readonly name: string;
  readonly contentType: string | null;
  readonly sha256: string;
  readonly value: BodyValue;
}

/**
 * A multipart body: file parts are streamed to the object store while they are hashed, inline parts are kept as text. Whatever
 * ends the reading early leaves no file behind. Throws Problem 413, 415, 422.
 */
export async function readMultipart(services: Services, request: FastifyRequest, accountId: string): Promise<ReadBody> {
  const staged: string[] = [];
  const discard = async (): Promise<void> => await services.blobs.remove(staged);
  try {
    const parts = await collectParts(services, request, accountId, staged);
    return { values: valuesOf(parts), print: { kind: "multipart", parts: printsOf(parts) }, discard };
  } catch (error) {
    await discard();
    throw error;
  }
}

function openParser(request: FastifyRequest): InstanceType<typeof Busboy> {
  const boundary = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^\s;]+))/i.exec(request.headers["content-type"] ?? "");
  const text = boundary?.[1] ?? boundary?.[2] ?? "";
  if (text.length === 0 || text.length > limits.multipartBoundaryCharactersMax) {
    throw new Problem("validation_error", "The Content-Type header must name a multipart boundary of 1 to 70 characters.", {
      status: 415,
    });
  }
  return new Busboy({
    headers: request.headers as BusboyHeaders,
    isPartAFile: (_name, contentType, filename) => filename !== undefined || contentType === "application/octet-stream",
    limits: {
      fileSize: limits.multipartFileBytesMax,
      files: limits.multipartFilesMax,
      fieldSize: limits.jsonBodyBytesMax,
      fieldNameSize: 1_024,
      parts: limits.multipartPartsMax,
      headerPairs: 20,
    },
  } as ConstructorParameters<typeof Busboy>[0]);
}

async function collectParts(
  services: Services,
  request: FastifyRequest,
  accountId: string,
  staged: string[],
): Promise<readonly Part[]> {
  const parser = openParser(request);
  const fields: Part[] = [];
  const files: Promise<Part>[] = [];
  const finished = new Promise<void>((resolve, reject) => {
    let bytes = 0;
    let inlineBytes = 0;
    const fail = (error: Error): void => {
      request.raw.unpipe(parser);
      reject(error);
      parser.destroy(error);
    };
    parser.on("field", (name: string, value: string, nameTruncated: boolean, valueTruncated: boolean, _encoding: string, type: string) => {
      inlineBytes += Buffer.byteLength(value);
      if (nameTruncated || valueTruncated || inlineBytes > limits.triggerJsonBytesMax) fail(tooLarge("An inline part"));
      else if (!value.isWellFormed() || !name.isWellFormed()) fail(malformed("A part holds a lone surrogate."));
      else fields.push(fieldPart(name, value, type));
    });
    parser.on("file", (name: string, stream: Readable & { truncated?: boolean }, filename: string | undefined, _encoding: string, type: string) => {
      files.push(storeFile(services, accountId, staged, { name, stream, filename, type }).catch((error: Error) => {
        fail(error);
        throw error;
      }));
    });
    for (const event of ["partsLimit", "filesLimit", "fieldsLimit"]) parser.on(event, () => fail(tooLarge("The number of parts")));
    parser.on("finish", resolve);
    // The library's messages quote the body.
    parser.on("error", (error: Error) => reject(error instanceof Problem ? error : malformed("The multipart body is malformed.")));
    request.raw.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limits.multipartBytesMax) fail(tooLarge("The body"));
    });
    request.raw.on("aborted", () => fail(malformed("The body ended early.")));
    request.raw.pipe(parser);
  });
  try {
    await finished;
  } finally {
    // No file may still be on its way into the store when the caller removes what was staged.
    await Promise.allSettled(files);
  }
  return [...fields, ...(await Promise.all(files))];
}

function fieldPart(name: string, value: string, type: string): Part {
  return {
    name,
    contentType: type || null,
    sha256: createHash("sha256").update(value, "utf8").digest("hex"),
    value: { kind: "string", text: value },
  };
}

async function storeFile(
  services: Services,
  accountId: string,
  staged: string[],
  part: { readonly name: string; readonly stream: Readable & { truncated?: boolean }; readonly filename: string | undefined; readonly type: string },
): Promise<Part> {
  const blob = await stageUpload(services, accountId, part.stream, (key) => staged.push(key));
  if (part.stream.truncated) throw tooLarge(`The file of part "${part.name.slice(0, 100)}"`);
  return {
    name: part.name,
    contentType: part.type || null,
    sha256: blob.sha256.toString("hex"),
    value: {
      kind: "file",
      blobKey: blob.key,
      filename: part.filename ?? null,
      contentType: part.type || null,
      sizeBytes: blob.sizeBytes,
      sha256: blob.sha256,
    },
  };
}

/** A repeated part name is `422`; a repeated `credential_id` is one list (design, page 1, Multipart). */
function valuesOf(parts: readonly Part[]): ReadonlyMap<string, BodyValue> {
  const values = new Map<string, BodyValue>();
  for (const part of parts) {
    const earlier = values.get(part.name);
    if (!earlier) values.set(part.name, part.value);
    else if (part.name.startsWith("credential_id") && earlier.kind === "string" && part.value.kind === "string") {
      values.set(part.name, { kind: "string", text: `${earlier.text},${part.value.text}` });
    } else throw invalidField(part.name, `The part "${part.name}" was sent more than once.`);
  }
  return values;
}

function printsOf(parts: readonly Part[]): readonly PartPrint[] {
  const seen = new Map<string, number>();
  return parts.map((part) => {
    const indexInName = seen.get(part.name) ?? 0;
    seen.set(part.name, indexInName + 1);
    const filename = part.value.kind === "file" ? part.value.filename : null;
    return { name: part.name, indexInName, filename, contentType: part.contentType, sha256: part.sha256 };
  });
}
