// docs/simulator.md: what the simulator knows of leases is what the statements of its processes say.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LeaseWatch } from "./lease-watch.ts";

const claim = { name: "admit_runs", text: "update run", values: [["run_1"], "wrk_2"] };
const alone = (epoch: number) => ({
  name: "leave_line",
  text: "update run",
  values: ["run_1", "wrk_1", epoch],
});
const together = (epoch: number) => ({
  name: "move_steps",
  text: "update run",
  values: [
    ["run_0", "run_1"],
    ["wrk_1", "wrk_1"],
    [1, epoch],
    ["a", "b"],
  ],
});

test("a write under a lease that had an effect after a later claim's COMMIT is a breach, alone and in a batch", () => {
  for (const write of [alone(1), together(1)]) {
    const leases = new LeaseWatch();
    const commit = leases.see("w2", claim, [{ id: "run_1", epoch: 2 }]);
    leases.see("w1", write, [{ runId: "run_1" }]);
    assert.deepEqual(leases.breaches, [], "before the COMMIT");
    commit();
    leases.see("w1", write, []);
    leases.see("w1", together(1), [{ runId: "run_0" }]);
    assert.deepEqual(leases.breaches, [], "without an effect");
    leases.see("w1", write, [{ runId: "run_1" }]);
    assert.match(
      leases.breaches.join("\n"),
      /^w1 has done \w+ to run_1 with epoch 1, which w2 has claimed with 2$/,
    );
  }
});

test("a write of the claim itself, and the end of a request that another claim began, are none", () => {
  const leases = new LeaseWatch();
  leases.see("w2", claim, [{ id: "run_1", epoch: 2 }])();
  leases.see("w2", alone(2), [{}]);
  leases.see("w2", together(2), [{ runId: "run_1" }]);
  leases.see("w1", { ...alone(1), name: "end_write" }, [{}]);
  assert.deepEqual(leases.breaches, []);
});
