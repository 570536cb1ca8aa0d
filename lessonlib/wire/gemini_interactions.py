from lessonlib.wire.base import WireFormat


class GeminiInteractions(WireFormat):
    name = "gemini-interactions"
