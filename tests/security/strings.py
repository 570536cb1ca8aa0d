"""Texts that do harm where somebody forgot to escape them, and how to see that one did.

Every injection tries to make an element `xinject` or an attribute `onxinject`: if a parser finds either, it worked. Every
terminal text holds control characters that a terminal would act on, or characters that hide or reverse what is read.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

TAG = "<xinject onxinject=1>"

INJECTIONS = (
    TAG,
    f'">{TAG}',
    f"'>{TAG}",
    f"</td></tr></table>{TAG}",
    f"</pre></code></span></div>{TAG}",
    f"<!-- -->{TAG}<!--",
    f"-->{TAG}",
    f"]]>{TAG}",
    f"</script>{TAG}<script>",
    f"</style>{TAG}<style>",
    f"</title></textarea></details></summary>{TAG}",
    "<XINJECT/onxinject=1/>",
    "<xinject\tonxinject=1\n>",
    '" onxinject="1',
    "' onxinject='1",
    "` onxinject=`1",
    "&lt;xinject onxinject=1&gt;",
    "&#60;xinject onxinject=1&#62;",
    "&#x3c;xinject&#x3e;",
    f"**bold** [link](javascript:alert(1)) {TAG}",
    f"$$\\href{{javascript:alert(1)}}{{x}}$$ {TAG}",
    f"{{{{constructor}}}} ${{7*7}} {TAG}",
)

ESCAPES = (
    "\x1b[2J\x1b[H",  # clears the screen
    "\x1b]0;title\x07",  # sets the window's title
    "\x1b]52;c;cm0gLXJm\x07",  # writes the clipboard
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",  # a link
    "\x1bP+q544e\x1b\\",  # asks the terminal to answer into the shell's input
    "\x9b31m",  # the 8-bit form
    "good\rbad",  # writes over the line
    "a\x08\x08b",
    "\x7f",
    "\u202ereversed",
    "in\u200bvisible\u2066",
    "tag\U000e0041s",
)

HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\U000e0000-\U000e007f]")
"""What must reach no terminal; tabs and line ends may."""


class _Found(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("xinject", "script", "iframe", "object", "embed", "link", "meta", "base", "form"):
            self.bad.append(tag)
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith(("javascript:", "data:text")):
                self.bad.append(f"{tag} {name}={value}")


def injected(html: str) -> list[str]:
    """The elements and attributes in a piece of HTML that no page of ours has."""
    found = _Found()
    found.feed(html)
    found.close()
    return found.bad
