from lessonlib.wire.base import WireFormat


class GeminiGenerateContent(WireFormat):
    name = "gemini-generate-content"
