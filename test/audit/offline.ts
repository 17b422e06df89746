import { createHash, createPublicKey, verify } from "node:crypto";

/*
 * What an auditor writes who has an export and `docs/audit.md`, section "Checking an export offline", and nothing of this
 * repository: no import from `src/`.
 */

/** 1: each part after its length, four bytes, big-endian. */
function frame(...parts: readonly (string | Buffer)[]): Buffer {
  const framed = parts.map((part) => {
    const bytes = Buffer.from(part as string);
    return Buffer.concat([
      Buffer.from([bytes.length >> 24, bytes.length >> 16, bytes.length >> 8, bytes.length]),
      bytes,
    ]);
  });
  return Buffer.concat(framed);
}

/** 2: the hash that a line must have. */
export function hashOfLine(line: any): string {
  const bytes = frame(
    "latchkey.audit.chain.v1",
    Buffer.from(line.previous, "hex"),
    String(line.sequence),
    line.chain,
    line.id,
    line.occurred_at,
    line.actor_kind,
    line.actor_id ?? "",
    line.action,
    line.subject_id,
    line.run_id ?? "",
    line.detail,
  );
  return createHash("sha256").update(bytes).digest("hex");
}

/** 3: whether the signature of a line, or of a checkpoint, is one of this public key. */
function isSigned(publicKey: string, bytes: Buffer, signature: string): boolean {
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: publicKey }, format: "jwk" });
  return verify(null, bytes, key, Buffer.from(signature, "base64url"));
}

/** The problems of an export (lines of NDJSON, parsed), with the public key that was got another way; none: all is well. */
export function checkExport(lines: readonly any[], publicKey: string): readonly string[] {
  const problems: string[] = [];
  let header: any = null;
  let before: any = null;
  for (const line of lines) {
    if (line.format !== undefined) {
      if (header && before && before.hash !== header.head)
        problems.push(`${header.chain} does not end at its head`);
      [header, before] = [line, null];
      if (line.public_key !== publicKey) problems.push(`${line.chain}: another public key`);
      continue;
    }
    const place = `${line.chain} ${line.sequence}`;
    const follows =
      before === null || (line.sequence === before.sequence + 1 && line.previous === before.hash);
    if (!follows) problems.push(`${place} does not follow ${before.sequence}`);
    if (line.sequence === 1 && line.previous !== "00".repeat(32)) problems.push(`${place} is no beginning`);
    if (hashOfLine(line) !== line.hash) problems.push(`${place} was changed`);
    const signed = frame(
      "latchkey.audit.place.v1",
      line.chain,
      String(line.sequence),
      Buffer.from(line.hash, "hex"),
    );
    if (!isSigned(publicKey, signed, line.signature)) problems.push(`${place} is not signed`);
    before = line;
  }
  if (header && before && before.hash !== header.head)
    problems.push(`${header.chain} does not end at its head`);
  return problems;
}

/** Whether a line of `audit-checkpoints.ndjson` is genuine. */
export function isCheckpoint(line: any, publicKey: string): boolean {
  const bytes = frame("latchkey.audit.checkpoint.v1", line.chain, String(line.count), line.head, line.at);
  return isSigned(publicKey, bytes, line.signature);
}
