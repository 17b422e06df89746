import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { packRepeated, zipRepeated } from "../packed-bytes.ts";

/** A target that wishes a worker ill: each path is another bomb. */
export interface HostileTarget extends AsyncDisposable {
  readonly url: string;
  /** Bytes that were handed to the socket, by path. */
  readonly sent: ReadonlyMap<string, number>;
}

const MIB = 1_048_576;
const ZEROS = Buffer.alloc(64 * MIB);
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

type Answer = (response: ServerResponse, query: URLSearchParams, path: string) => void;

/** Of a bomb that is made before anybody asks, and sent as often as asked: making one takes seconds. */
const whole = (type: string, make: () => Buffer | string, coding?: string): Answer => {
  const body = make();
  return (response) => {
    response.writeHead(200, { "content-type": type, ...(coding && { "content-encoding": coding }) });
    response.end(body);
  };
};

export async function startHostileTarget(): Promise<HostileTarget> {
  const sent = new Map<string, number>();
  const timers = new Set<NodeJS.Timeout>();
  const endless: Answer = (response, _query, path) => {
    response.writeHead(200, { "content-type": "application/json" });
    const chunk = Buffer.from(`${'{"items":['.padEnd(65_535, " ")},`);
    const more = (): void => {
      do sent.set(path, (sent.get(path) ?? 0) + chunk.length);
      while (!response.destroyed && response.write(chunk));
    };
    response.on("drain", more);
    more();
  };
  const drip: Answer = (response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 100);
    timers.add(timer);
    response.once("close", () => clearInterval(timer));
  };
  const answers: Readonly<Record<string, Answer>> = {
    "/good": whole("application/json", () =>
      JSON.stringify([
        { n: 1, name: "one" },
        { n: 2, name: "two" },
      ]),
    ),
    "/proto": whole(
      "application/json",
      () => '[{"__proto__":{"polluted":1},"constructor":"c","toString":"t"}]',
    ),
    "/gzip": whole("application/json", () => gzipSync(ZEROS), "gzip"),
    "/brotli": whole("application/json", () => brotliCompressSync(ZEROS, BROTLI), "br"),
    "/endless": endless,
    "/drip": drip,
    "/nested": whole("application/json", () => "[".repeat(5_000_000)),
    "/many": whole("application/json", () => `[${"{},".repeat(500_000)}{}`),
    "/columns": whole("text/csv", () => `${"c,".repeat(400_000)}c\n`),
    "/pages": (response, query) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ items: [{ n: 1 }], next: Number(query.get("cursor") ?? 0) + 1 }));
    },
    "/same-page": (response) => {
      response.writeHead(200, { "content-type": "application/json", link: '</same-page>; rel="next"' });
      response.end('{"items":[{"n":1}]}');
    },
    "/entities": whole("application/xml", entityBomb),
    "/markup": whole("text/html", () => "<b></p>".repeat(60_000)),
    "/sheet": whole("application/octet-stream", sheetBomb),
    "/pdf": whole("application/pdf", pdfBomb),
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://target");
    response.on("error", () => undefined);
    answers[url.pathname]?.(response, url.searchParams, url.pathname);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent,
    [Symbol.asyncDispose]: async () => {
      for (const timer of timers) clearInterval(timer);
      await new Promise((resolve) => server.close(resolve).closeAllConnections());
    },
  };
}

function entityBomb(): string {
  const entities = Array.from({ length: 10 }, (_, level) =>
    level === 0 ? '<!ENTITY l0 "lol">' : `<!ENTITY l${level} "${`&l${level - 1};`.repeat(10)}">`,
  );
  return `<?xml version="1.0"?><!DOCTYPE r [${entities.join("")}]><r><row>&l9;</row></r>`;
}

/** A spreadsheet whose one sheet unpacks to a gigabyte. */
function sheetBomb(): Buffer {
  const packed = packRepeated("\0", 1_024 * MIB);
  const name = Buffer.from("xl/worksheets/sheet1.xml");
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(8, 4);
  // Without a checksum, which comes after all of it.
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(1_024 * MIB, 18);
  common.writeUInt16LE(name.length, 22);
  const local = Buffer.concat([Buffer.from("PK\u0003\u0004", "latin1"), common, name, packed]);
  const entry = Buffer.concat([
    Buffer.from("PK\u0001\u0002\u0014\u0000", "latin1"),
    common,
    Buffer.alloc(14),
    name,
  ]);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(entry.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, entry, end]);
}

/** A PDF of one page, whose content unpacks to half a gigabyte of text operators. */
function pdfBomb(): Buffer {
  const content = zipRepeated("(a) Tj ", 512 * MIB);
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << >> >>",
  ].map((object, index) => Buffer.from(`${index + 1} 0 obj\n${object}\nendobj\n`));
  const stream = Buffer.concat([
    Buffer.from(`4 0 obj\n<< /Length ${content.length} /Filter /FlateDecode >>\nstream\n`),
    content,
    Buffer.from("\nendstream\nendobj\n"),
  ]);
  return Buffer.concat([
    Buffer.from("%PDF-1.4\n"),
    ...objects,
    stream,
    Buffer.from("trailer << /Root 1 0 R /Size 5 >>\n%%EOF"),
  ]);
}
