"""Reads what arrives in pieces: records of a download, events of a stream."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, Iterator

_STRUCTURE = re.compile(r'["{}\[\]]')
_END_OF_TEXT = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)


class RecordReader:
    """The records of `{"totalRecords": n, "records": […]}`: only what has not been read is in memory."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self._at = 0
        self._depth = 0
        self._name = ""
        self._start: int | None = None
        self._is_in_records = False
        #: Whether the last bracket was read.
        self.is_at_end = False

    def push(self, chunk: bytes) -> Iterator[Any]:
        self._rest += self._decoder.decode(chunk)
        while found := _STRUCTURE.search(self._rest, self._at):
            if found[0] == '"':
                end = _END_OF_TEXT.match(self._rest, found.end())
                if end is None:
                    self._at = found.start()
                    break
                if self._depth == 1:
                    self._name = self._rest[found.end() : end.end() - 1]
                self._at = end.end()
                continue
            self._at = found.end()
            if found[0] in "{[":
                self._open(found)
            elif (record := self._close(found)) is not None:
                yield json.loads(record)
        else:
            self._at = len(self._rest)
        kept = self._at if self._start is None else self._start
        self._rest = self._rest[kept:]
        self._at -= kept
        self._start = None if self._start is None else 0

    def _open(self, found: re.Match[str]) -> None:
        self._depth += 1
        if self._depth == 2:
            self._is_in_records = found[0] == "[" and self._name == "records"
        if self._depth == 3 and self._is_in_records:
            self._start = found.start()

    def _close(self, found: re.Match[str]) -> str | None:
        self._depth -= 1
        record = None
        if self._depth == 2 and self._is_in_records and self._start is not None:
            record = self._rest[self._start : found.end()]
            self._start = None
        if self._depth == 1:
            self._is_in_records = False
        self.is_at_end = self._depth == 0
        return record


class EventReader:
    """The events of a `text/event-stream` (HTML Standard, "Server-sent events"), line by line."""

    def __init__(self) -> None:
        #: Of the last event; sent back as `Last-Event-ID` after an interruption.
        self.last_id = ""
        self._id = ""
        self._data: list[str] = []

    def push(self, line: str) -> Any | None:
        """The event that this line ends."""
        if line == "":
            data, self._data = "\n".join(self._data), []
            if data == "":
                return None
            self.last_id = self._id
            return json.loads(data)
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            self._id = value
        if field == "data":
            self._data.append(value)
        return None
