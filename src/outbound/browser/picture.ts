import type { BrowserContext, CDPSession, Page } from "playwright-core";
import { halve, readPng, writePng, type Pixels } from "#lib/png.ts";
import { coveredAreas, type Area } from "./covered-areas.ts";

export interface PictureRequest {
  /** Whether a text of the page has a secret in it. */
  readonly isSecret: (text: string) => boolean;
  /** The places that a step is about. */
  readonly marked: readonly Area[];
  /** The size of the PNG: a picture that has more is made smaller. */
  readonly bytesMax?: number;
}

/** How often a page that moves is looked at again. */
const ATTEMPTS = 3;
/** Letters may be drawn a little outside of their box. */
const MARGIN = 3;
const MARK_WIDTH = 3;
const COVER: Color = [0x86, 0x8e, 0x96];
const MARK: Color = [0xe0, 0x31, 0x31];

type Color = readonly [red: number, green: number, blue: number];

/**
 * What the window shows, as a PNG, with everything that may be secret covered. The covers are painted here, into the pixels: nothing
 * of the page can lie above them. Null: the page does not stand still, or does not answer, so it is not known what to cover.
 */
export async function takePicture(
  context: BrowserContext,
  page: Page,
  { isSecret, marked, bytesMax = Infinity }: PictureRequest,
): Promise<Buffer | null> {
  const session = await context.newCDPSession(page);
  try {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      const before = await areasOf(session, isSecret);
      const { data } = await session.send("Page.captureScreenshot", { format: "png" });
      const after = await areasOf(session, isSecret);
      if (JSON.stringify(before) === JSON.stringify(after))
        return small(paint(readPng(Buffer.from(data, "base64")), after, marked), bytesMax);
    }
    return null;
  } finally {
    session.detach().catch(() => undefined);
  }
}

async function areasOf(session: CDPSession, isSecret: (text: string) => boolean): Promise<readonly Area[]> {
  return coveredAreas(await session.send("DOMSnapshot.captureSnapshot", { computedStyles: [] }), isSecret);
}

function paint(pixels: Pixels, covered: readonly Area[], marked: readonly Area[]): Pixels {
  for (const area of covered) fill(pixels, grow(area, MARGIN), COVER);
  for (const area of marked) {
    const { x, y, width, height } = grow(area, MARGIN + MARK_WIDTH);
    fill(pixels, { x, y, width, height: MARK_WIDTH }, MARK);
    fill(pixels, { x, y: y + height - MARK_WIDTH, width, height: MARK_WIDTH }, MARK);
    fill(pixels, { x, y, width: MARK_WIDTH, height }, MARK);
    fill(pixels, { x: x + width - MARK_WIDTH, y, width: MARK_WIDTH, height }, MARK);
  }
  return pixels;
}

function small(pixels: Pixels, bytesMax: number): Buffer {
  const png = writePng(pixels);
  return png.length <= bytesMax ? png : small(halve(pixels), bytesMax);
}

function grow({ x, y, width, height }: Area, by: number): Area {
  const left = Math.floor(x - by);
  const top = Math.floor(y - by);
  return {
    x: left,
    y: top,
    width: Math.ceil(x + width + by) - left,
    height: Math.ceil(y + height + by) - top,
  };
}

function fill({ width, height, rgb }: Pixels, area: Area, color: Color): void {
  const [left, right] = [Math.max(area.x, 0), Math.min(area.x + area.width, width)];
  const [top, bottom] = [Math.max(area.y, 0), Math.min(area.y + area.height, height)];
  for (let y = top; y < bottom; y += 1)
    for (let x = left; x < right; x += 1) rgb.set(color, (y * width + x) * 3);
}
