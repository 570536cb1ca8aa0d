"""Three round trips, right and wrong."""

from __future__ import annotations

from copy import deepcopy

from tests.lab_exercises.answers import Answers


# fmt: off
def base():
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    words, question, said = "Be brief.", "What is the weather in Beijing?", "Sunny, 25 °C"

    ask_o = {
        "model": "m", "instructions": words, "store": False,
        "input": [{"role": "user", "content": question}],
        "tools": [{"type": "function", "name": "get_weather", "parameters": city}],
    }
    say_o = {
        "id": "resp_1", "object": "response", "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather",
             "arguments": '{"city":"Beijing"}'},
        ],
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 40},
                  "output_tokens": 55, "output_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 155},
    }
    result_o = {"type": "function_call_output", "call_id": "call_1", "output": said}
    back_o = {**ask_o, "input": [*ask_o["input"], *say_o["output"], result_o]}

    ask_a = {
        "model": "m", "max_tokens": 4096, "system": words,
        "messages": [{"role": "user", "content": question}],
        "tools": [{"name": "get_weather", "input_schema": city}],
    }
    say_a = {
        "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "", "signature": "EqQB"},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Beijing"}},
        ],
        "usage": {"input_tokens": 60, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40,
                  "output_tokens": 55},
    }
    result_a = {"type": "tool_result", "tool_use_id": "toolu_1", "content": said}
    back_a = {**ask_a, "messages": [*ask_a["messages"], {"role": "assistant", "content": say_a["content"]},
                                    {"role": "user", "content": [result_a]}]}

    ask_g = {
        "model": "m", "system_instruction": words, "store": False,
        "input": [{"type": "user_input", "content": [{"type": "text", "text": question}]}],
        "tools": [{"type": "function", "name": "get_weather", "parameters": city}],
    }
    say_g = {
        "status": "requires_action",
        "steps": [
            {"type": "thought", "signature": "c2ln"},
            {"type": "function_call", "id": "fc_1", "name": "get_weather", "arguments": {"city": "Beijing"}},
        ],
        "usage": {"total_input_tokens": 100, "total_cached_tokens": 40, "total_output_tokens": 25,
                  "total_thought_tokens": 30, "total_tokens": 155},
    }
    result_g = {"type": "function_result", "call_id": "fc_1", "result": said}
    back_g = {**ask_g, "input": [*ask_g["input"], *say_g["steps"], result_g]}
    return {
        "openai": {"request": ask_o, "answer": say_o, "second": back_o},
        "anthropic": {"request": ask_a, "answer": say_a, "second": back_a},
        "gemini": {"request": ask_g, "answer": say_g, "second": back_g},
    }
# fmt: on


def in_other_words():
    """Chinese city, texts as lists, a remark before each call, a result with more words, fields that nobody asked for."""
    trips = base()
    openai, anthropic, gemini = trips["openai"], trips["anthropic"], trips["gemini"]
    question = "北京的天气怎么样？"
    for request in (openai["request"], openai["second"]):
        request["input"] = [{"role": "user", "content": [{"type": "input_text", "text": question}]}, *request["input"][1:]]
        request["include"] = ["reasoning.encrypted_content"]
    for request in (anthropic["request"], anthropic["second"]):
        request["messages"] = [{"role": "user", "content": [{"type": "text", "text": question}]}, *request["messages"][1:]]
        request["system"] = [{"type": "text", "text": "You are Desk."}]
        request["stream"] = True
    gemini["request"]["input"] = question
    gemini["second"]["input"][0]["content"][0]["text"] = question
    call = openai["answer"]["output"][1]
    call |= {"arguments": '{"city": "北京"}', "status": "completed"}
    anthropic["answer"]["content"][1]["input"]["city"] = "北京"
    gemini["answer"]["steps"][1]["arguments"]["city"] = "北京"
    openai["second"]["input"][-1]["output"] = "Sunny, 25 °C, light wind"
    return trips


def as_a_dictionary_of_rebuilt_items():
    """The second requests are written out; `status` and nulls stay behind."""
    trips = base()
    openai = trips["openai"]
    openai["answer"]["output"][0] |= {"status": None}
    openai["answer"]["output"][1] |= {"status": "completed"}
    openai["second"]["input"] = [
        {"role": "user", "content": "What is the weather in Beijing?"},
        {"encrypted_content": "gAAAA", "summary": [], "id": "rs_1", "type": "reasoning"},
        {
            "arguments": '{"city":"Beijing"}',
            "name": "get_weather",
            "call_id": "call_1",
            "id": "fc_1",
            "type": "function_call",
        },
        {"output": "It is Sunny.", "call_id": "call_1", "type": "function_call_output"},
    ]
    return trips


def steps_in_content():
    """Gemini's answer under Anthropic's name for the list."""
    trips = base()
    trips["gemini"]["answer"]["content"] = trips["gemini"]["answer"].pop("steps")
    return trips


def said_by_the_developer():
    """OpenAI's system prompt, as a message of the developer's in the conversation."""
    trips = deepcopy(base())
    for part in ("request", "second"):
        body = trips["openai"][part]
        content = [{"type": "input_text", "text": body.pop("instructions")}]
        said = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
        body["input"] = [{"role": "developer", "content": content}, *said]
    return trips


ANSWERS = Answers(
    "trips",
    base,
    [in_other_words, as_a_dictionary_of_rebuilt_items, in_other_words(), said_by_the_developer()],
    [
        ("not_an_answer", steps_in_content),
        ("not_written", {"openai": {"request": None, "answer": None, "second": None}}),
        ("wrong_shape", {"openai": {}}),
        ("wrong_shape", []),
    ],
)
