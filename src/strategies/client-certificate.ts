import { createPrivateKey, X509Certificate, type KeyObject } from "node:crypto";

export interface CertificateTexts {
  readonly certificate: string;
  readonly key: string;
  /** Of the key; undefined when none was given. */
  readonly passphrase: string | undefined;
}

export type ReadCertificate =
  /** PEM: the certificates alone, the first of them the client's own, and its key in the clear. */
  | { readonly ok: true; readonly certificate: string; readonly key: string }
  /** One or two sentences for the end user, which hold nothing of either file. */
  | { readonly ok: false; readonly part: keyof CertificateTexts; readonly message: string };

const refuse = (part: keyof CertificateTexts, message: string): ReadCertificate => ({
  ok: false,
  part,
  message,
});

/** Reads a client certificate and its key. Both may be in one file. What the libraries say of a broken one is not shown. */
export function readClientCertificate(texts: CertificateTexts, nowMs: number): ReadCertificate {
  const blocks = texts.certificate.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const [first] = blocks;
  if (first === undefined)
    return refuse(
      "certificate",
      "This holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----.",
    );
  const certificates = blocks.map(parseCertificate);
  const [own] = certificates;
  if (!own || certificates.some((each) => each === null))
    return refuse("certificate", "This certificate can't be read. It may be incomplete.");
  if (Date.parse(own.validTo) < nowMs) return refuse("certificate", "This certificate has expired.");
  const key = readKey(texts);
  if (!("type" in key)) return key;
  if (!own.checkPrivateKey(key)) return refuse("key", "This key does not belong to the certificate.");
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
  if (!/-----BEGIN ([A-Z]+ )?PRIVATE KEY-----/.test(key))
    return refuse(
      "key",
      "This holds no private key in PEM form, which begins with -----BEGIN PRIVATE KEY-----.",
    );
  const isLocked = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(key);
  if (isLocked && (passphrase === undefined || passphrase === ""))
    return refuse("key", "This key is protected by a passphrase, which was not given.");
  try {
    return createPrivateKey({ key, ...(isLocked && passphrase !== undefined && { passphrase }) });
  } catch {
    return isLocked
      ? refuse("passphrase", "The key does not open with this passphrase.")
      : refuse("key", "This key can't be read. It may be incomplete.");
  }
}
