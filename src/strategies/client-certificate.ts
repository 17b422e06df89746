import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";
import { issue, type FormIssue, type IssueCode } from "#domain/form-issue.ts";

export interface CertificateTexts {
  readonly certificate: string;
  readonly key: string;
  /** The key's passphrase; undefined when none was given. */
  readonly passphrase: string | undefined;
}

export type ReadCertificate =
  /** PEM: only the certificates, the client's own first, and its decrypted key. */
  | { readonly ok: true; readonly certificate: string; readonly key: string }
  | { readonly ok: false; readonly part: keyof CertificateTexts; readonly issue: FormIssue };

const refuse = (part: keyof CertificateTexts, code: IssueCode): ReadCertificate => ({
  ok: false,
  part,
  issue: issue(code),
});

/** Reads a client certificate and its key. Both may be in one file. The libraries' messages about an invalid one are not shown. */
export function readClientCertificate(texts: CertificateTexts, nowMs: number): ReadCertificate {
  const blocks = texts.certificate.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const [first] = blocks;
  if (first === undefined) return refuse("certificate", "certificate_none");
  const certificates = blocks.map(parseCertificate);
  const [own] = certificates;
  if (!own || certificates.some((each) => each === null)) return refuse("certificate", "certificate_broken");
  if (Date.parse(own.validTo) < nowMs) return refuse("certificate", "certificate_expired");
  const key = readKey(texts);
  if (!("type" in key)) return key;
  if (!own.checkPrivateKey(key)) return refuse("key", "key_other");
  return {
    ok: true,
    certificate: `${blocks.join("\n")}\n`,
    key: String(key.export({ type: "pkcs8", format: "pem" })),
  };
}

function parseCertificate(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem);
  } catch {
    return null;
  }
}

function readKey({ key, passphrase }: CertificateTexts): KeyObject | ReadCertificate {
  if (!/-----BEGIN ([A-Z]+ )?PRIVATE KEY-----/.test(key)) return refuse("key", "key_none");
  const isLocked = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(key);
  if (isLocked && (passphrase === undefined || passphrase === "")) return refuse("key", "key_locked");
  try {
    return createPrivateKey({ key, ...(isLocked && passphrase !== undefined && { passphrase }) });
  } catch {
    return isLocked ? refuse("passphrase", "key_wrong_passphrase") : refuse("key", "key_broken");
  }
}
