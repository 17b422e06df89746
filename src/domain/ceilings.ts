import { limits } from "./limits.ts";

/** What one process may hold at a time, and how fast its callers may be. */
export interface Ceilings {
  /** Rates and bursts are divided by this. */
  readonly processes: number;
  readonly connections: { readonly perClientMax: number; readonly many: number; readonly allMax: number };
  readonly largeBodiesBytes: number;
  readonly largeBodiesReadBytes: number;
  readonly eventStreams: { readonly perKey: number; readonly perAccount: number; readonly inAll: number };
  readonly dashboardStreams: { readonly perSession: number; readonly inAll: number };
  readonly databaseConnections: number;
}

/** A process with fewer would wait for connections while PostgreSQL has nothing to do. */
const DATABASE_CONNECTIONS_MIN = 5;

/**
 * The part of each ceiling that one of `processes` has when they serve one port together (docs/scaling.md), and so the whole
 * ceiling for 1. A body of the largest permitted size always has room.
 */
export function ceilingsOf(processes: number): Ceilings {
  const part = (whole: number, min = 1): number => Math.max(min, Math.floor(whole / processes));
  const { connections } = limits;
  return {
    processes,
    connections: {
      perClientMax: part(connections.perClientMax),
      many: part(connections.many),
      allMax: part(connections.allMax),
    },
    largeBodiesBytes: part(limits.largeBodiesBytesMax, limits.triggerJsonBytesMax),
    largeBodiesReadBytes: part(limits.largeBodiesReadBytesMax, limits.triggerJsonBytesMax),
    eventStreams: {
      perKey: part(limits.eventStreamsPerKeyMax),
      perAccount: part(limits.eventStreamsPerAccountMax),
      inAll: part(limits.eventStreamsMax),
    },
    dashboardStreams: {
      perSession: part(limits.dashboardStreamsPerSessionMax),
      inAll: part(limits.dashboardStreamsMax),
    },
    databaseConnections: part(limits.databaseConnectionsMax, DATABASE_CONNECTIONS_MIN),
  };
}
