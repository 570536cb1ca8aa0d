"""Decoders of Anthropic's stream, right and wrong."""

from __future__ import annotations

import json

from lessonlib.errors import APIError, IncompleteStream, ProtocolError
from lessonlib.sse import ServerSentEvent
from lessonlib.wire.anthropic_messages import AnthropicMessages
from tests.lab_exercises.answers import Answers


class Base:
    """One dictionary of blocks, one method for each thing that an event may be."""

    def __init__(self):
        self.blocks = {}
        self.stop = None
        self.output = None
        self.done = False

    def feed(self, event):
        if self.done:
            return
        kind = event["type"]
        if kind == "message_start":
            self.output = event["message"]["usage"]["output_tokens"]
        elif kind == "content_block_start":
            block = event["content_block"]
            self.blocks[event["index"]] = {"block": block, "pieces": [block.get("text", "")], "open": True}
        elif kind == "content_block_delta":
            self.piece(event)
        elif kind == "content_block_stop":
            self.close_block(self.blocks[event["index"]])
        elif kind == "message_delta":
            self.stop = event["delta"].get("stop_reason")
            self.output = event["usage"]["output_tokens"]
        elif kind == "message_stop":
            self.done = True
        elif kind == "error":
            raise APIError(event["error"]["message"], type=event["error"]["type"])

    def piece(self, event):
        block = self.blocks.get(event["index"])
        if block is None or not block["open"]:
            raise ProtocolError("a piece for a block that is not open")
        delta = event["delta"]
        if delta["type"] == "text_delta":
            block["pieces"].append(delta["text"])
        elif delta["type"] == "input_json_delta":
            block["pieces"].append(delta["partial_json"])

    def close_block(self, block):
        block["open"] = False
        if block["block"]["type"] == "tool_use":
            block["args"] = self.parse("".join(block["pieces"]))

    def parse(self, text):
        try:
            args = json.loads(text or "{}")
        except ValueError:
            return None
        return args if isinstance(args, dict) else None

    def close(self):
        if not self.done:
            raise IncompleteStream("no message_stop")

    def result(self):
        texts, calls = [], []
        for _, each in sorted(self.blocks.items()):
            block = each["block"]
            if block["type"] == "text":
                texts.append("".join(each["pieces"]))
            elif block["type"] == "tool_use":
                calls.append({"id": block["id"], "name": block["name"], "args": each["args"]})
        return {"text": "".join(texts), "calls": calls, "stop": self.stop, "output_tokens": self.output}


class ByLibrary:
    """The library's own decoder behind the asked names."""

    def __init__(self):
        self.inner = AnthropicMessages("m").decoder()

    def feed(self, event):
        self.inner.feed(ServerSentEvent("", json.dumps(event).encode()))

    def close(self):
        self.inner.close()

    def result(self):
        response = self.inner.result()
        calls = [{"id": call.call_id, "name": call.name, "args": call.args} for call in response.tool_calls]
        return {
            "text": response.text,
            "calls": calls,
            "stop": response.raw_stop,
            "output_tokens": response.usage.output_tokens,
        }


class ByTable:
    """A table of methods; everything is kept in lists until the end."""

    def __init__(self):
        self.starts, self.pieces, self.stopped, self.ends = {}, {}, set(), []

    def feed(self, event):
        getattr(self, "on_" + event["type"], lambda event: None)(event)

    def on_content_block_start(self, event):
        self.starts[event["index"]] = event["content_block"]
        self.pieces[event["index"]] = []

    def on_content_block_delta(self, event):
        place = event["index"]
        if place not in self.starts or place in self.stopped:
            raise ProtocolError("not open")
        delta = event["delta"]
        self.pieces[place] += [delta.get("text", ""), delta.get("partial_json", "")]

    def on_content_block_stop(self, event):
        self.stopped.add(event["index"])

    def on_message_delta(self, event):
        self.ends.append(event)

    def on_message_stop(self, event):
        self.ends.append(event)

    def on_error(self, event):
        raise APIError("no")

    def close(self):
        if not self.ends or self.ends[-1]["type"] != "message_stop":
            raise IncompleteStream("cut")

    def result(self):
        found = {"text": "", "calls": []}
        for place in sorted(self.starts):
            start, said = self.starts[place], "".join(self.pieces[place])
            if start["type"] == "text":
                found["text"] += start["text"] + said
            if start["type"] == "tool_use":
                found["calls"].append({"id": start["id"], "name": start["name"], "args": self.args(said)})
        return {
            **found,
            "stop": self.ends[0]["delta"]["stop_reason"],
            "output_tokens": self.ends[0]["usage"]["output_tokens"],
        }

    def args(self, said):
        try:
            value = json.loads(said) if said.strip() else {}
        except json.JSONDecodeError:
            value = None
        return value


class ParsesAtTheEnd(Base):
    """Parses all arguments at the end of the body, before it looks whether the end has come."""

    def close_block(self, block):
        block["open"] = False

    def close(self):
        for block in self.blocks.values():
            if block["block"]["type"] == "tool_use":
                block["args"] = self.args(block)
        super().close()

    def args(self, block):
        text = "".join(block["pieces"])
        return json.loads(text or "{}") if block["open"] else self.parse(text)


class ByStop(Base):
    """Lists the blocks in the order in which they stopped."""

    def close_block(self, block):
        super().close_block(block)
        place = next(place for place, each in self.blocks.items() if each is block)
        self.stopped = [*getattr(self, "stopped", []), place]

    def result(self):
        self.blocks = {number: self.blocks[place] for number, place in enumerate(self.stopped)}
        return super().result()


ANSWERS = Answers(
    "decoder",
    Base,
    [ByLibrary, ByTable],
    [
        ("parses_at_the_end", ParsesAtTheEnd),
        ("order_of_arrival", ByStop),
        ("not_written", None),
        ("wrong_shape", dict),
    ],
)  # fmt: skip
