from lessonlib.wire.base import WireFormat


class OpenAIResponses(WireFormat):
    name = "openai-responses"
