"""Parsers of server-sent events, right and wrong."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from lessonlib.sse import SSEParser
from tests.lab_exercises.answers import Answers


class Base:
    """Keeps the pieces of the line that has begun, and the data lines of the event."""

    def __init__(self):
        self.line = []
        self.data = []
        self.name = ""
        self.after_cr = False
        self.head = b""
        self.started = False

    def feed(self, chunk):
        if not self.started:
            chunk = self.head + chunk
            if len(chunk) < 3 and b"\xef\xbb\xbf".startswith(chunk):
                self.head = chunk
                return []
            self.started, chunk = True, chunk.removeprefix(b"\xef\xbb\xbf")
        if self.after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
        self.after_cr = chunk.endswith(b"\r") or (self.after_cr and not chunk)
        events = []
        for piece in chunk.splitlines(keepends=True):
            self.line.append(piece.rstrip(b"\r\n"))
            if piece.endswith((b"\r", b"\n")):
                events += self.end_of_line()
        return events

    def end_of_line(self):
        line, self.line = b"".join(self.line).decode("utf-8", "replace"), []
        if not line:
            event = [(self.name or "message", "\n".join(self.data))] if self.data else []
            self.name, self.data = "", []
            return event
        if line.startswith(":"):
            return []
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self.data.append(value)
        elif name == "event":
            self.name = value
        return []

    def close(self):
        events = self.end_of_line() if self.line else []
        data = "\n".join(self.data)
        if self.data and (data.strip() == "[DONE]" or self.whole(data)):
            events.append((self.name or "message", data))
        return events

    @staticmethod
    def whole(data):
        try:
            json.loads(data)
        except ValueError:
            return False
        return True


@dataclass
class Event:
    event: str
    data: bytes


class ByRegex:
    """Another style: a regular expression for line ends, a CR that waits for what follows it, objects, data as bytes."""

    END = re.compile(rb"\r\n|\n|\r(?!$)")

    def __init__(self):
        self.pieces = []
        self.fields = []
        self.first = True

    def feed(self, chunk):
        if self.pieces and self.pieces[-1].endswith(b"\r"):
            chunk = self.pieces.pop() + chunk
        *lines, rest = self.END.split(chunk)
        found = []
        for line in lines:
            found += self.take(b"".join([*self.pieces, line]))
            self.pieces = []
        self.pieces.append(rest)
        return found

    def take(self, line):
        if self.first:
            line, self.first = line.removeprefix(b"\xef\xbb\xbf"), False
        if line:
            name, _, value = line.partition(b":")
            self.fields.append((name, value[1:] if value[:1] == b" " else value))
            return
        data = [value for name, value in self.fields if name == b"data"]
        names = [value.decode() for name, value in self.fields if name == b"event"]
        self.fields = []
        if data:
            yield Event((names or ["message"])[-1] or "message", b"\n".join(data))

    def close(self):
        found = self.feed(b"\n")
        data = b"\n".join(value for name, value in self.fields if name == b"data")
        if data == b"[DONE]" or Base.whole(data.decode("utf-8", "replace")):
            found += self.take(b"")
        return found


class ByGenerator:
    """A third style: a generator that is sent bytes, dicts for events."""

    def __init__(self):
        self.machine = self.run()
        next(self.machine)

    def feed(self, chunk):
        return self.machine.send(chunk)

    def close(self):
        return self.machine.send(None)

    def run(self):
        parser, out = SSEParser(), []
        while True:
            chunk = yield [{"event": one.event, "data": one.data.decode("utf-8", "replace")} for one in out]
            out = parser.close() if chunk is None else parser.feed(chunk)


class TextBuffer:
    """The usual first version: a text buffer, cut at blank lines."""

    def __init__(self):
        self.buffer = ""

    def feed(self, chunk):
        self.buffer += chunk.decode("utf-8", "replace")
        *blocks, self.buffer = self.buffer.split("\n\n")
        return [event for block in blocks for event in self.event(block)]

    def event(self, block):
        data = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        names = [line[6:].removeprefix(" ") for line in block.split("\n") if line.startswith("event:")]
        return [((names or ["message"])[-1], "\n".join(data))] if data else []

    def close(self):
        return []


class OneRead:
    """Looks at each read alone."""

    def feed(self, chunk):
        return TextBuffer.event(self, chunk.decode().split("\n\n")[0])

    def close(self):
        return []


class Rescans:
    """Right, but it searches the whole buffer anew at each read."""

    def __init__(self):
        self.all = b""
        self.given = 0

    def feed(self, chunk):
        self.all += chunk
        parser = SSEParser()
        found = parser.feed(bytes(bytearray(self.all)))
        new = found[self.given :]
        self.given = len(found)
        self.parser = parser
        return [(one.event, one.data) for one in new]

    def close(self):
        return [(one.event, one.data) for one in self.parser.close()]


class StrictDecoder(TextBuffer):
    """Decodes each read, and raises in the middle of a character."""

    def feed(self, chunk):
        self.buffer += chunk.decode("utf-8")
        *blocks, self.buffer = self.buffer.split("\n\n")
        return [event for block in blocks for event in self.event(block)]


class TwoBlankLines(Base):
    """Waits for two blank lines."""

    def end_of_line(self):
        if not b"".join(self.line) and not getattr(self, "blank", False):
            self.blank, self.line = True, []
            return []
        self.blank = False
        return super().end_of_line()


class Nameless(Base):
    """Has no default name."""

    def feed(self, chunk):
        return [(None if name == "message" else name, data) for name, data in super().feed(chunk)]


class Forgetful(Base):
    """Starts anew at each read that ends a line."""

    def feed(self, chunk):
        found = super().feed(chunk)
        if len(chunk) == 3 and not found:
            self.data = self.data[:1]
            self.name = ""
        return found


class InBytearrays(Base):
    """Another style: the data is bytes of another kind."""

    def feed(self, chunk):
        return [(name, bytearray(data.encode() if isinstance(data, str) else data)) for name, data in super().feed(chunk)]


ANSWERS = Answers(
    "sse",
    Base,
    [ByRegex, ByGenerator, SSEParser, InBytearrays],
    [
        ("decodes_each_read", TextBuffer),
        ("decodes_each_read", StrictDecoder),
        ("one_read_one_event", OneRead),
        ("rescans", Rescans),
        ("no_event", TwoBlankLines),
        ("no_default_name", Nameless),
        ("depends_on_cuts", Forgetful),
        ("wrong_shape", object),
        ("not_written", None),
        ("wrong_shape", lambda: []),
    ],
)  # fmt: skip
