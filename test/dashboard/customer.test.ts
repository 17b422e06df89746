/** Whose run a list says it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { customerOf, othersOf, runTitle } from "../../ui/parts/customer.ts";

test("the customer is the metadata `customer`, or a name of it, or its id", () => {
  assert.equal(customerOf({ order: "12", customer: "Eastfield" }), "Eastfield");
  assert.equal(customerOf({ customer_id: "c_9", customer_name: "Eastfield" }), "Eastfield");
  assert.equal(customerOf({ customer_id: "c_9" }), "c_9");
  assert.equal(customerOf({ order: "12", customers: "all" }), null);
});

test("the other metadata is what is left, also where it has the same value", () => {
  assert.deepEqual(othersOf({ customer: "Eastfield", site: "Eastfield", order: "12" }), [
    ["site", "Eastfield"],
    ["order", "12"],
  ]);
  assert.deepEqual(othersOf({ order: "12" }), [["order", "12"]]);
});

test("a run without a name is a test login, or its id", () => {
  const id = "run_0VrJ000000000000TqN5";
  assert.equal(runTitle({ name: "Invoices", blueprint: null, tested: null, id }), "Invoices");
  assert.equal(runTitle({ name: null, blueprint: null, tested: null, id }), "Test login");
  assert.equal(runTitle({ name: null, blueprint: null, tested: "Portal", id }), "Test login of Portal");
  assert.equal(runTitle({ name: null, blueprint: "invoices", tested: null, id }), "run_0VrJ…TqN5");
});
