import { mulberry32 } from "./random.ts";

export const SHIPMENT_STATUSES = ["in transit", "delivered", "delayed"] as const;

export interface Shipment {
  readonly number: string;
  readonly destination: string;
  readonly carrier: string;
  readonly status: (typeof SHIPMENT_STATUSES)[number];
  /** When it is due: YYYY-MM-DD */
  readonly due: string;
  readonly packages: number;
  readonly weight_kg: number;
}

export const SHIPMENT_COUNT = 96;
export const SHIPMENT_COLUMNS = ["number", "destination", "carrier", "status", "due"] as const;
const DESTINATIONS = ["Ålesund", "Bristol, Dock 4", "Cork", "Gdańsk", "Le Havre", "Rotterdam"] as const;
const CARRIERS = ["Cobalt Freight", "Fjord Line", "Hale & Sons"] as const;

/** The same seed gives the same shipments on every machine. Every fourth is delayed. */
export function generateShipments(seed: number): readonly Shipment[] {
  const random = mulberry32(seed);
  const below = (count: number): number => Math.floor(random() * count);
  return Array.from({ length: SHIPMENT_COUNT }, (_, index) => ({
    number: `SH-${String(index + 1).padStart(4, "0")}`,
    destination: DESTINATIONS[below(DESTINATIONS.length)] ?? DESTINATIONS[0],
    carrier: CARRIERS[below(CARRIERS.length)] ?? CARRIERS[0],
    status: index % 4 === 3 ? "delayed" : (SHIPMENT_STATUSES[below(2)] ?? "delivered"),
    due: new Date(Date.UTC(2026, 0, 5 + index)).toISOString().slice(0, 10),
    packages: 1 + below(40),
    weight_kg: 5 + below(900),
  }));
}

/** RFC 4180, with a header row. */
export function shipmentsCsv(shipments: readonly Shipment[]): string {
  const cell = (text: string): string => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = shipments.map((shipment) => SHIPMENT_COLUMNS.map((column) => cell(shipment[column])).join());
  return [SHIPMENT_COLUMNS.join(), ...rows, ""].join("\r\n");
}
