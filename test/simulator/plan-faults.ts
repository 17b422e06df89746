import { must } from "#lib/assert.ts";
import { handleFailpoints, type Failpoint } from "#lib/failpoint.ts";
import { describeFault, type Fault } from "./faults.ts";
import type { Fleet } from "./fleet.ts";
import type { Parts, Surroundings } from "./processes.ts";
import { currentProcess } from "./sim-process.ts";
import { CALM } from "./sim-network.ts";
import { STORE_WELL } from "./sim-store.ts";
import type { World } from "./world.ts";

/** What happens to the processes, and to what is around them, until all faults are over. */
export function planFaultsInto(
  around: Surroundings,
  fleet: Fleet,
  faults: readonly Fault[],
  untilMs: number,
): void {
  const { world } = around;
  const points: AwaitedPoint[] = [];
  world.after(untilMs, "faults are over", () => void points.splice(0));
  handleFailpoints((name) => atPoint(world, fleet, points, name));
  for (const fault of faults) {
    const [begin, end] = fault.kind === "point" ? awaitPoint(points, fault) : effectOf(fault, around, fleet);
    world.after(fault.atMs, `fault ${fault.kind}`, () => {
      world.tell("fault", describeFault(fault));
      begin();
    });
    if (end) world.after(fault.atMs + fault.forMs, `end of ${fault.kind}`, end);
  }
}

type Effect = readonly [begin: () => void, end?: () => void];
type FaultOf<Kind> = Extract<Fault, { readonly kind: Kind }>;

const awaitPoint = (points: AwaitedPoint[], { point, does, forMs }: FaultOf<"point">): Effect => [
  () => void points.push({ point, does, forMs }),
];

/** What a fault does when it begins, and when it ends. */
function effectOf(fault: Exclude<Fault, FaultOf<"point">>, around: Surroundings, fleet: Fleet): Effect {
  const { world, server, network, store, news, target } = around;
  switch (fault.kind) {
    case "crash":
      return crash(fault, world, fleet);
    case "pause":
      return pause(fault, world, fleet);
    case "cut":
      return [() => fleet.find(fault.of)?.self.cut()];
    case "stall":
      return [() => server.standStill(fault.forMs)];
    case "failover":
      return [
        () => {
          server.isDown = true;
          fleet.cutAll();
          void world.work.track("a replacement", server.replace());
        },
        () => (server.isDown = false),
      ];
    case "network":
      return [() => (network.weather = fault.weather), () => (network.weather = CALM)];
    case "store":
      return [() => Object.assign(store, fault.mood), () => Object.assign(store, STORE_WELL)];
    case "news":
      return [() => (news.lost = fault.lossRate), () => (news.lost = 0)];
    case "target":
      return [() => (target.mood = fault.mood), () => (target.mood = target.usual)];
    case "clock":
      return [() => server.stepClock(fault.stepMs)];
  }
}

const crash = (fault: FaultOf<"crash">, world: World, fleet: Fleet): Effect => [
  () => fleet.find(fault.of)?.self.crash(),
  () => {
    if (fault.isForGood || fleet.find(fault.of)?.self.isCrashed !== true) return;
    world.tell("fault", `${fault.of} is started again`);
    fleet.start(fault.of);
  },
];

function pause(fault: FaultOf<"pause" | "cut">, world: World, fleet: Fleet): Effect {
  let paused: Parts | undefined;
  return [
    () => (paused = fleet.find(fault.of))?.self.pause(),
    () => {
      world.tell("fault", `${fault.of} goes on`);
      paused?.self.resume();
    },
  ];
}

interface AwaitedPoint {
  readonly point: Failpoint;
  readonly does: "crash" | "pause";
  readonly forMs: number;
}

/** A process has come to a point: it may be the one that a fault waits for. */
function atPoint(
  world: World,
  fleet: Fleet,
  points: AwaitedPoint[],
  name: Failpoint,
): Promise<void> | undefined {
  const self = currentProcess();
  const place = points.findIndex(({ point }) => point === name);
  if (self === undefined || !self.isUp || place < 0) return undefined;
  const { does, forMs } = must(points.splice(place, 1)[0], "the point");
  world.faultsUntilMs = Math.max(world.faultsUntilMs, world.nowMs + forMs);
  world.tell("fault", `${self.name} ${does === "crash" ? "crashes" : "stands still"} at ${name}`);
  if (does === "crash") {
    self.crash();
    world.after(forMs, "back after a point", () => fleet.startAgain(self));
  } else {
    self.pause();
    world.after(forMs, "goes on after a point", () => {
      world.tell("fault", `${self.name} goes on`);
      self.resume();
    });
  }
  return self.untilUp();
}
