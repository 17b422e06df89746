import { readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";

const CERTIFICATES = new URL("../strategies/certificates/", import.meta.url);

/** A file of the tests' own certificates. */
export const certificate = (name: string): string => readFileSync(new URL(name, CERTIFICATES), "utf8");
/** What a process trusts that `NODE_EXTRA_CA_CERTS` names it to. */
export const CA_FILE = fileURLToPath(new URL("ca.pem", CERTIFICATES));

export interface TlsTarget {
  readonly url: string;
  /** Who presented a certificate, by its name, oldest first. */
  readonly clients: readonly string[];
  close(): void;
}

/** A target that wants a client certificate of the test's CA, and notes who presented one. */
export async function openTlsTarget(answer: RequestListener): Promise<TlsTarget> {
  const clients: string[] = [];
  const server = createServer(
    {
      cert: certificate("server.pem"),
      key: certificate("server.key.pem"),
      ca: certificate("ca.pem"),
      requestCert: true,
      rejectUnauthorized: true,
    },
    (request, response) => {
      clients.push(String((request.socket as TLSSocket).getPeerCertificate().subject.CN));
      answer(request, response);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clients,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
