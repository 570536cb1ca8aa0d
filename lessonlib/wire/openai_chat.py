from lessonlib.wire.base import WireFormat


class OpenAIChat(WireFormat):
    name = "openai-chat"
