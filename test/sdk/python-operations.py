"""Runs each example of `/docs` in Python with a client that sends nothing. Prints, by operation, what would have been sent."""

import inspect
import json
import sys
import typing

import httpx

import latchkey
from latchkey import AsyncLatchkey, Latchkey

told: dict = {"sent": {}, "untyped": [], "other_names": []}


def answer(request: httpx.Request) -> httpx.Response:
    body = json.loads(request.content) if request.content else None
    sent.append([request.method, request.url.path, body])
    if request.method == "DELETE" or request.url.path.endswith("/events"):
        return httpx.Response(204)
    return httpx.Response(200, json={"id": "x", "status": "completed"})


def resources(of: object) -> dict:
    return {name: value for name, value in vars(of).items() if not name.startswith("_")}


class Enough(Exception):
    """A stream that would be opened again and again."""


for operation, source in json.load(sys.stdin).items():
    sent: list = []

    def limited(request: httpx.Request) -> httpx.Response:
        if sent:
            raise Enough
        return answer(request)

    http = httpx.Client(transport=httpx.MockTransport(limited))
    client = Latchkey(api_key="lk_x", base_url="https://connect.example.com", http_client=http)
    try:
        exec(source, {"client": client})
    except Enough:
        pass
    told["sent"][operation] = sent

with_, without = AsyncLatchkey(api_key="lk_x", base_url="https://a.example"), client
for name, resource in {**resources(without), "": without}.items():
    other = getattr(with_, name) if name else with_
    methods = [each for each in dir(resource) if not each.startswith("_")]
    for method in methods:
        value = getattr(resource, method)
        if not inspect.ismethod(value):
            continue
        hints = typing.get_type_hints(value)
        parameters = inspect.signature(value).parameters
        if "return" not in hints or any(each not in hints for each in parameters):
            told["untyped"].append(f"{name}.{method}")
        if not hasattr(other, method):
            told["other_names"].append(f"{name}.{method}")

json.dump(told, sys.stdout)
