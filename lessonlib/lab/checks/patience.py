"""A limit for code that may never come back: `with patience(10): ...` raises TooLong inside the block.

A check runs the learner's object in the learner's own kernel, and a loop without an end would hang it without a word. Where
the system has a timer (POSIX) it interrupts whatever runs, a wait too; elsewhere the main thread is interrupted as the stop
button does. TooLong is no Exception, so that a learner's `except Exception` does not keep it; to one who catches everything
it is said again, once a second, and after the third time the way out is printed.

What this file does not do: nothing outside of the main thread, where no timer can interrupt anything. Code for others runs
in a process with limits of its own (`grading`).
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SECONDS = 10.0
"""For one use of a learner's object; a right one takes a tenth of a second."""

STUBBORN = (
    "The code under check catches what shall stop it, and goes on. In a notebook: the stop button, more than once; if that "
    "does not help, Kernel > Restart."
)


class TooLong(BaseException):
    """The code was stopped because it did not come back. The message says after how long."""


@contextmanager
def patience(seconds: float = SECONDS, *, again: float = 1.0) -> Iterator[None]:
    """Raises TooLong inside the block when it takes longer, and again so many seconds after that. Does nothing outside of
    the main thread, or inside of another such block."""
    if threading.current_thread() is not threading.main_thread() or _Clock.running:
        yield
        return
    clock = _Timer(seconds, again) if hasattr(signal, "setitimer") else _Thread(seconds, again)
    _Clock.running = True
    try:
        clock.start()
        try:
            yield
        finally:
            clock.stop()
    except KeyboardInterrupt:
        if clock.rung:  # by us, not by the person
            raise clock.too_long() from None
        raise
    finally:
        _Clock.running = False


class _Clock:
    """What both kinds share. rung: how often it has interrupted."""

    running = False

    def __init__(self, seconds: float, again: float) -> None:
        self.seconds = seconds
        self.again = again
        self.rung = 0

    def start(self) -> None:
        """Begins."""

    def stop(self) -> None:
        """Ends; nothing is interrupted from here on."""

    def too_long(self) -> TooLong:
        return TooLong(f"stopped after {self.seconds:g} s")


class _Timer(_Clock):
    """The system's timer: its signal interrupts a wait as well as a loop."""

    def start(self) -> None:
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, self.again)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        self.rung += 1
        if self.rung == 3:
            print(STUBBORN, file=sys.__stderr__ if sys.stderr is None else sys.stderr, flush=True)
        raise self.too_long()


class _Thread(_Clock):
    """A thread that interrupts the main one, where the system has no timer."""

    def start(self) -> None:
        self._timer = threading.Timer(self.seconds, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()

    def _ring(self) -> None:
        self.rung += 1
        _thread.interrupt_main()
