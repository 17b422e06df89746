import assert from "node:assert/strict";
import { test } from "node:test";
import { ceilingsOf } from "#domain/ceilings.ts";
import { limits } from "#domain/limits.ts";

test("one process has the limits whole", () => {
  const whole = ceilingsOf(1);
  assert.deepEqual(whole.connections, limits.connections);
  assert.equal(whole.largeBodiesBytes, limits.largeBodiesBytesMax);
  assert.equal(whole.eventStreams.inAll, limits.eventStreamsMax);
  assert.equal(whole.databaseConnections, limits.databaseConnectionsMax);
});

test("several have no more together, and each has room for what one caller may send", () => {
  for (const processes of [2, 3, 16, 128]) {
    const part = ceilingsOf(processes);
    assert.ok(part.connections.allMax * processes <= limits.connections.allMax);
    assert.ok(part.eventStreams.inAll * processes <= limits.eventStreamsMax);
    assert.ok(part.largeBodiesReadBytes >= limits.triggerJsonBytesMax);
    assert.ok(part.dashboardStreams.perSession >= 1);
    assert.ok(part.databaseConnections >= 5);
  }
});
