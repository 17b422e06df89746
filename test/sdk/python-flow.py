"""A customer's backend in Python: what typescript.pg.test.ts does, without and with asyncio. Prints JSON."""

import asyncio
import io
import json
import os
import sys

import latchkey
from latchkey import AsyncLatchkey, Latchkey

OPTIONS = {"api_key": os.environ["API_KEY"], "base_url": os.environ["BASE_URL"]}
OPEN = {"needed": "a", "needed_too": "b"}


def refusal(error: latchkey.ApiError) -> list:
    assert OPTIONS["api_key"] not in repr(error)
    return [type(error).__name__, error.status, error.details[0].get("field") if error.details else None]


def flow() -> dict:
    told: dict = {"ignored": [], "states": [], "refusals": []}
    with Latchkey(**OPTIONS) as client:
        told["health"] = [client.read_liveness()["status"], client.read_readiness()["status"]]
        session = client.credential_sessions.create(
            {"strategy_id": "strat_acme", "metadata": {"order": "4711"}, "expires_in_seconds": 3600},
            idempotency_key="python",
        )
        assert session["metadata"] == {"order": "4711"}
        print(session["hosted_url"], flush=True)
        ended = client.credential_sessions.wait_for(session["id"], timeout=30)
        file = io.BytesIO(b"a,b")
        file.name = "/tmp/orders.csv"
        run = client.blueprints.trigger(
            "with-login",
            {
                "credential_id": [ended["credential_id"]],
                "po": 17,
                "data": [{"n": 1}, {"n": 2, "text": 'a "quoted" {brace} ä'}],
                "file": file,
                "misspelled, key": True,
            },
            on_ignored_keys=told["ignored"].extend,
        )
        for state in client.runs.watch(run["id"]):
            told["states"].append(state["status"])
        told["status"] = client.runs.wait_for(run["id"])["status"]
        told["records"] = [record["data"] for record in client.runs.records(run["run_key"])]
        told["metadata"] = client.runs.read_results(run["id"])["executionMetadata"]["metadata"]
        for call in (
            lambda: client.runs.cancel(run["id"]),
            lambda: client.blueprints.trigger("open", {"needed": "a"}),
            lambda: client.credentials.delete("cred_x"),
            lambda: Latchkey(api_key="lk_wrong", base_url=OPTIONS["base_url"]).runs.read_status("run_x"),
        ):
            try:
                call()
            except latchkey.ApiError as error:
                told["refusals"].append(refusal(error))
        try:
            list(client.runs.records(run["id"], "aout"))
        except latchkey.LatchkeyError as error:
            told["no_key"] = str(error)
        told["schema"] = client.blueprints.read_schema("open")["type"]
        client.credentials.delete(ended["credential_id"])
    return told


async def async_flow() -> dict:
    """Against a service whose answers to POST are lost twice of three times."""
    async with AsyncLatchkey(api_key=OPTIONS["api_key"], base_url=os.environ["CUT_URL"]) as client:
        rows = [{"n": n, "filler": f'{n}-"{"x" * 100}"'} for n in range(34_000)]
        run = await client.blueprints.trigger("open", {**OPEN, "data": rows})
        status = (await client.runs.wait_for(run["id"]))["status"]
        numbers = [record["data"]["n"] async for record in client.runs.records(run["id"], "out")]
        session = await client.embedded_credential_sessions.create({"origin": "https://app.acme.example"})
        read = await client.embedded_credential_sessions.read(session["id"])
        return {"status": status, "in_order": numbers == list(range(34_000)), "embedded": read["status"]}


told = flow()
told["async"] = asyncio.run(async_flow())
json.dump(told, sys.stdout)
