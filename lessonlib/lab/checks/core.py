"""What every check is made of: probes that feed a learner's object, and a diagnosis of the first one that comes out wrong.

A check has two halves that never touch each other's data:

    observe(learner, given) -> plain data      runs beside the learner's object, knows no answer
    Probe(given, expected, ...)                knows the answer, never sees the object

In a notebook both run in one process, one probe after the other. For others (`grading.py`) the first half runs in a
process of its own, and only plain data comes back. So what is compared is always numbers, texts, lists and objects of
JSON, by exact type: of a subclass only the built-in content counts, an `__eq__` that always says yes is never asked, and 1
is not True.

A wrong outcome is not only refused but *diagnosed*. Each probe says which belief its wrong outcomes come from: some by a
sign (exactly this wrong value, or this exception), all others by default. Probes are ordered from the smallest input to the
largest, so the first one that fails is the smallest that does.

What this file does not do: it knows no exercise (one file per check), keeps no state (progress.py), and proves nothing
about a learner who wants to deceive: within one process everything can be replaced. `PROVES` says so with every pass.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from linecache import getline
from pathlib import Path
from traceback import walk_tb
from typing import Any

from lessonlib.lab import progress
from lessonlib.lab.checks.patience import TooLong, patience
from lessonlib.lab.notice import Notice, code, folded, paragraph, title

PROVES = "A check inside your notebook proves it to you. It could be replaced from within, so it proves nothing to others."

NOT_WRITTEN = "not_written"
WRONG_SHAPE = "wrong_shape"
NO_PLAIN_DATA = "no_plain_data"
RAISES = "raises"
NEVER_ENDS = "never_ends"


@dataclass(frozen=True, slots=True)
class Belief:
    """A misunderstanding: what the learner seems to believe, and where that would be right."""

    seems: str
    where: str


GENERAL: Mapping[str, Belief] = {
    NOT_WRITTEN: Belief(
        "It is not written yet: the place for your code still raises NotImplementedError, or is None.",
        "That is how every exercise begins.",
    ),
    WRONG_SHAPE: Belief(
        "What you passed cannot be called as the exercise asks.",
        "Other names and other parameters are as good; but the check has to know how to call it.",
    ),
    NO_PLAIN_DATA: Belief(
        "What came back cannot be compared: it holds an object that is neither text, number, list nor dictionary.",
        "Inside of your own program that is fine; a check compares plain values, by exact type.",
    ),
    RAISES: Belief(
        "Your code raises an exception where an answer was expected.",
        "An exception is right where nothing sensible can be said. Here something can.",
    ),
    NEVER_ENDS: Belief(
        "Your code did not come back: it loops or waits without an end.",
        "A server may run for ever. Here each turn of a loop has to come nearer to its end, and nothing is waited for.",
    ),
}
"""Beliefs that any exercise can meet."""


# ---------------------------------------------------------------- plain data


class NotPlain(Exception):
    """A value that is no plain data."""


def plain(value: Any, depth: int = 12, *, bare: bool = False) -> Any:
    """The value as plain data, copied: exact None, bool, int, float, str, bytes, list and dict with text keys. A tuple
    becomes a list. Raises NotPlain for all else, subclasses included. bare: a subclass (an OrderedDict, a word of a StrEnum)
    counts as what it is to the built-in type, whatever methods it has of its own."""
    kind = type(value)
    if kind in (type(None), bool, int, float, str, bytes):
        return value
    for base, content in _SCALARS if bare else ():
        if issubclass(kind, base):
            return content(value)
    if depth == 0:
        raise NotPlain("nested too deeply")
    for sequence in (list, tuple):
        if kind is sequence or (bare and issubclass(kind, sequence)):
            return [plain(item, depth - 1, bare=bare) for item in sequence.__iter__(value)]
    if kind is dict or (bare and issubclass(kind, dict)):
        items = [(plain(key, 0, bare=bare), item) for key, item in dict.items(value)]
        if not all(type(key) is str for key, _ in items):
            raise NotPlain("a dictionary whose keys are not texts")
        return {key: plain(item, depth - 1, bare=bare) for key, item in items}
    raise NotPlain(f"a {kind.__name__}")


_SCALARS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
)
"""How to read the content of a subclass of these without asking the subclass."""


def same(expected: Any, found: Any) -> bool:
    """Whether two plain values are equal, types included."""
    if type(expected) is not type(found):
        return False
    if type(expected) is list:
        return len(expected) == len(found) and all(map(same, expected, found))
    if type(expected) is dict:
        return expected.keys() == found.keys() and all(same(value, found[key]) for key, value in expected.items())
    return bool(expected == found)


def told(error: BaseException) -> str:
    """The first line of what an exception says, and which line of the learner's cell it comes from, where that is known."""
    try:
        text = str(error)
    except Exception:
        text = "(it cannot say what it is: its __str__ raises)"
    first = next(iter(text.strip().splitlines()), "")[:200]
    return printable(f"{first}{_place(error)}")


def printable(text: str) -> str:
    """A text that may be written to any terminal: no controls, and no halves of a character."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _place(error: BaseException) -> str:
    """The last frame in code that was typed into a cell: its file is not on the disk."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    typed = [(file, line) for file, line in frames if not file.startswith("<frozen") and not Path(file).exists()]
    file, line = typed[-1] if typed else ("", 0)
    source = getline(file, line).strip() if typed else ""
    return f" (line {line} of your cell: {source[:80]})" if source else ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a probe brought: a plain value, or the name and text of an exception."""

    value: Any = None
    raised: str = ""
    message: str = ""

    def shown(self) -> str:
        """For the message."""
        return f"{self.raised}: {self.message}".rstrip(": ") if self.raised else show_value(self.value)


def show_value(value: Any, limit: int = 400) -> str:
    """A plain value as Python writes it, one item per line where it is long."""
    text = repr(value)
    if len(text) > 90 and isinstance(value, list) and value:
        text = "\n".join(["[", *(f"  {item!r}," for item in value), "]"])
    elif len(text) > 90 and isinstance(value, dict):
        text = "\n".join(["{", *(f"  {key!r}: {item!r}," for key, item in value.items()), "}"])
    return text if len(text) <= limit else text[:limit] + " …"


# ---------------------------------------------------------------- probes


Sign = Callable[[Seen], bool]


def _fits(sign: Sign, seen: Seen) -> bool:
    """Whether a sign is there. A value that lacks what the sign looks at does not show it."""
    try:
        return bool(sign(seen))
    except (LookupError, TypeError, ValueError, AttributeError):
        return False


def equals(value: Any) -> Sign:
    """The sign "exactly this wrong value"."""
    return lambda seen: not seen.raised and same(value, seen.value)


def raised(*names: str) -> Sign:
    """The sign "one of these exceptions"; without names any that the learner's code raised by itself."""
    return lambda seen: seen.raised in names if names else seen.raised not in ("", TooLong.__name__)


@dataclass(frozen=True)
class Probe:
    """One question to the learner's object.

    given: what `observe` gets (plain data). expected: the plain value that must come, or `accept` decides.
    fed: the input in words, as short as it can be shown. where: the event or the field that counts.
    belief: what a wrong outcome means unless one of `signs` fits, which are asked in order.
    expected_words: what to show as expected instead of the value. remark: something to say about an outcome that is
    right, but could be better, None if there is nothing to say.
    """

    given: Any
    expected: Any
    fed: str
    where: str
    belief: str
    signs: tuple[tuple[Sign, str], ...] = ()
    accept: Callable[[Any], bool] | None = None
    expected_words: str = ""
    found_words: Callable[[Seen], str] | None = None
    remark: Callable[[Any], str | None] | None = None

    def judge(self, seen: Seen) -> str | None:
        """The belief behind what was seen, None if it is right."""
        if not seen.raised and self._is_right(seen.value):
            return None
        if seen.raised == "NotImplementedError":
            return NOT_WRITTEN
        for sign, belief in self.signs:
            if _fits(sign, seen):
                return belief
        if seen.raised == "NotPlain":
            return NO_PLAIN_DATA
        if seen.raised == "WrongShape":
            return WRONG_SHAPE
        if seen.raised == TooLong.__name__:
            return NEVER_ENDS
        return RAISES if seen.raised else self.belief

    def _is_right(self, value: Any) -> bool:
        """A value in which something is missing that is looked for is not right."""
        if self.accept is None:
            return same(self.expected, value)
        try:
            return bool(self.accept(value))
        except (LookupError, TypeError, ValueError, AttributeError):
            return False

    def shown(self, seen: Seen) -> str:
        """What was found, for the message."""
        if self.found_words is None or seen.raised:
            return seen.shown()
        try:
            return self.found_words(seen)
        except (LookupError, TypeError, ValueError, AttributeError):
            return seen.shown()


class WrongShape(Exception):
    """The learner's object cannot be called as the exercise asks; the message says how it must be called."""


def call(name: str, function: Any, *arguments: Any, **named: Any) -> Any:
    """Calls a learner's function; one that does not take these arguments is a WrongShape, not a TypeError of ours."""
    if not callable(function):
        kind = type(function).__name__
        raise WrongShape(f"{name} must be something that can be called; an object of {kind} cannot. Was it called already?")
    try:
        return function(*arguments, **named)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # raised by the call itself
            raise WrongShape(f"{name}: {error}") from None
        raise


def method(learner: Any, name: str, how: str) -> Callable[..., Any]:
    """A method of the learner's object, or WrongShape with how it is called."""
    found = getattr(learner, name, None)
    if not callable(found):
        raise WrongShape(f"there is no method {name}; it is called as {how}")
    return lambda *arguments, **named: call(name, found, *arguments, **named)


# ---------------------------------------------------------------- results


@dataclass(frozen=True)
class Result:
    """What a check says. passed; belief: the key of the misunderstanding, None if passed. As text and as HTML."""

    check: str
    exercise: str
    heading: str
    passed: bool
    belief: str | None = None
    fed: str = ""
    where: str = ""
    expected: str = ""
    found: str = ""
    seems: str = ""
    hint: str = ""
    advice: str = ""

    @property
    def message(self) -> str:
        """The first message, as plain text."""
        return repr(self)

    def __bool__(self) -> bool:
        return self.passed

    def shown(self) -> Notice:
        """The pieces."""
        if self.passed:
            remark = [paragraph(f"It passes, and could be better: {self.seems}")] if self.seems else []
            return Notice(title(f"Passed: {self.heading}"), *remark, paragraph(self.advice))
        pieces = [title(f"Not yet: {self.heading}")]
        for head, text in (("Fed", self.fed), ("Where", self.where), ("Expected", self.expected), ("Found", self.found)):
            if text:
                pieces += [paragraph(f"{head}:"), code(text)] if "\n" in text else [paragraph(f"{head}: {text}")]
        pieces += [paragraph(text) for text in (self.seems, self.hint) if text]
        return Notice(*pieces, paragraph(self.advice))

    def __repr__(self) -> str:
        return repr(self.shown())

    def _repr_html_(self) -> str:
        return self.shown()._repr_html_()

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        return {
            "check": self.check,
            "exercise": self.exercise,
            "passed": self.passed,
            "belief": self.belief,
            "message": self.message,
        }


NEXT = (
    "Next: change your code, run its cell, then this cell again. `lesson hint {exercise}` in a terminal shows the next hint."
)
DONE = "Next: `lesson next` in a terminal says what comes. " + PROVES


# ---------------------------------------------------------------- a check


@dataclass(frozen=True)
class Check:
    """One exercise's check; calling it checks a learner's object.

    name: as in `check.<name>`. exercise: its key ("01.parser"). heading: what it is about. beliefs: key -> Belief, in the
    words of this exercise. hints: three: where to look; the idea in one sentence; one line of code with a gap.
    observe: how to use the learner's object. probes: the questions, from a source of chance. also_ok: what to say with a
    pass.
    """

    name: str
    exercise: str
    heading: str
    beliefs: Mapping[str, Belief]
    hints: tuple[str, ...]
    observe: Callable[[Any, Any], Any]
    probes: Callable[[random.Random], Iterable[Probe]]

    @classmethod
    def of(cls, name: str, observe: Callable[[Any, Any], Any], probes: Callable[[random.Random], Iterable[Probe]]) -> Check:
        """A check whose words are data: `data/checks/<name>.toml`."""
        file = resources.files("lessonlib").joinpath(f"data/checks/{name}.toml")
        words = tomllib.loads(file.read_text(encoding="utf-8"))
        beliefs = {key: Belief(entry["seems"], entry["where"]) for key, entry in words["beliefs"].items()}
        return cls(name, words["exercise"], words["heading"], beliefs, tuple(words["hints"]), observe, probes)

    def __call__(self, learner: Any, *, seed: int | None = None) -> Result:
        """Checks a learner's object and records the outcome, if there was anything to check."""
        result = self.examine(learner, seed=seed)
        if result.belief == NOT_WRITTEN:
            return result
        progress.note_check(self.exercise, passed=result.passed, belief=result.belief)
        return result

    def examine(self, learner: Any, *, seed: int | None = None, hint: int | None = None) -> Result:
        """The same without recording the outcome. hint: which one to show, 0 for none; by default the learner's next one."""
        said = ""
        for probe in self.questions(seed):
            seen = self.look(learner, probe.given)
            belief = probe.judge(seen)
            if belief is not None:
                return self.refusal(probe, seen, belief, hint)
            said = said or (probe.remark(seen.value) if probe.remark is not None else "") or ""
        return self.success(said)

    def success(self, remark: str = "") -> Result:
        """The message for a pass."""
        return Result(self.name, self.exercise, self.heading, True, seems=remark, advice=DONE)

    def questions(self, seed: int | None = None) -> Iterator[Probe]:
        """The probes; those by chance follow the seed, a new one each time if none is given."""
        return iter(self.probes(random.Random(seed)))

    def look(self, learner: Any, given: Any) -> Seen:
        """What the learner's object does with this input. Never raises, but for a KeyboardInterrupt."""
        if learner is None:
            return Seen(raised="NotImplementedError")
        try:
            with patience():
                return Seen(plain(self.observe(learner, given), bare=True))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an exit too, or an exception that is no Exception: they must not end the kernel
            return Seen(raised=type(error).__name__, message=told(error))

    def refusal(self, probe: Probe, seen: Seen, belief: str, hint: int | None = None) -> Result:
        """The message for a wrong outcome."""
        said = self.beliefs.get(belief) or GENERAL[belief]
        number = self._next_hint(belief) if hint is None else hint
        return Result(
            self.name,
            self.exercise,
            self.heading,
            False,
            belief,
            fed=probe.fed,
            where=probe.where,
            expected=probe.expected_words or show_value(probe.expected),
            found=probe.shown(seen),
            seems=f"{said.seems} {said.where}",
            hint=f"Hint {number} of 3: {self.hints[number - 1]}" if number else "",
            advice=NEXT.format(exercise=self.exercise),
        )

    def _next_hint(self, belief: str) -> int:
        """The learner's next hint. Where nothing was tried yet, none is spent."""
        return 0 if belief == NOT_WRITTEN else progress.next_hint(self.exercise)

    def hint(self, number: int | None = None) -> Notice:
        """One of the three hints; by default the next one."""
        number = progress.next_hint(self.exercise) if number is None else min(max(number, 1), 3)
        return Notice(paragraph(f"Hint {number} of 3: {self.hints[number - 1]}"))


def fold(head: str, text: str) -> Notice:
    """A folded text, for checks that show more on demand."""
    return Notice(folded(head, code(text)))
