import { createSocket } from "node:dgram";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";

const GATHER_MS = 2_000;
/** For a packet that was sent to be read. */
const SETTLE_MS = 200;

/**
 * Whether WebRTC of this browser sends packets past the gate. The switches that forbid it have other names in other releases of
 * Chromium, and an unknown switch is ignored without a word. Nothing leaves this machine: the server that the page asks for is here.
 */
export async function findLeak(page: Page): Promise<boolean> {
  let packets = 0;
  const trap = createSocket("udp4").on("message", () => packets++);
  try {
    await new Promise<void>((resolve, reject) => trap.once("error", reject).bind(0, "127.0.0.1", resolve));
    await page.evaluate(askWebRtc(trap.address().port));
    await sleep(SETTLE_MS);
    return packets > 0;
  } finally {
    trap.close();
  }
}

/** A script, since this file is checked without the types of pages. */
const askWebRtc = (port: number): string => `new Promise((resolve) => {
  const connection = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${port}" }] });
  const end = () => { connection.close(); resolve(); };
  connection.onicegatheringstatechange = () => { if (connection.iceGatheringState === "complete") end(); };
  setTimeout(end, ${GATHER_MS});
  connection.createDataChannel("data");
  connection.createOffer().then((offer) => connection.setLocalDescription(offer)).catch(end);
})`;
