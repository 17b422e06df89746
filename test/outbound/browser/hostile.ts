/** A page that tries everything, and what it must not reach. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, type AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { BrowserRequest, OpenBrowser } from "#outbound/browser/open-browser.ts";
import { helper, hostilePage } from "./channels.ts";
import { startSite, without, type Site, type Stage } from "./stage.ts";

/** How long channels have that begin late. */
const SETTLE_MS = 1_500;

/** Lines for `openStage`: a Chromium whose pages may send packets. */
export const WITHOUT_WEBRTC = [without("--force-webrtc"), without("--webrtc-ip")].join("\n");

export interface Trap {
  readonly port: number;
  /** The first line of each connection. */
  readonly seen: string[];
  packets(): number;
}

/** Takes TCP and UDP on one port, on every address of this machine. */
export async function openTrap(context: TestContext): Promise<Trap> {
  const seen: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      seen.push(data.toString("latin1").split("\r\n")[0] ?? "");
      socket.end("HTTP/1.1 204 No Content\r\naccess-control-allow-origin: *\r\nconnection: close\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "::", resolve));
  const { port } = server.address() as AddressInfo;
  let packets = 0;
  const udp: UdpSocket = createSocket("udp6").on("message", () => packets++);
  await new Promise<void>((resolve) => udp.bind(port, "::", resolve));
  context.after(async () => {
    udp.close();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port, seen, packets: () => packets };
}

/** Serves the hostile page at `/`, and what its channels need of their own site. */
export async function startHostile(
  context: TestContext,
  targets: readonly string[],
  scheme: "http" | "https" = "http",
): Promise<Site> {
  return await startSite(
    context,
    (request, response) => {
      const found = helper(request.url ?? "/");
      if (found !== null) response.writeHead(found.status, found.headers).end(found.body);
      else response.writeHead(200, { "content-type": "text/html" }).end(hostilePage(targets));
    },
    scheme,
  );
}

export async function letItTry(
  stage: Stage,
  site: Site,
  request: Partial<BrowserRequest>,
): Promise<OpenBrowser> {
  const browser = await stage.open({ hosts: [site.origin], ...request });
  await browser.page.goto(`${site.origin}/`, { waitUntil: "commit" });
  await browser.page.waitForFunction("window.tried", null, { polling: 50 });
  await sleep(SETTLE_MS);
  return browser;
}
