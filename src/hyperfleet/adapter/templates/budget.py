"""How much a rendering may do: steps and text are bounded, so that no template takes long or much memory."""

from __future__ import annotations

from typing import Final

MAX_OUTPUT: Final = 1_048_576  # bytes; Kubernetes refuses larger objects, the API larger bodies
MAX_STEPS: Final = 100_000  # about half a second
_TEXT_PER_STEP: Final = 256  # characters; working on a long text takes longer


class RenderingFault(Exception):  # noqa: N818 - an internal signal; the evaluator adds the place
    """An operation cannot be done with these values; `str()` is the text for people."""


class RenderBudget:
    """What is left of the bounds of one rendering."""

    __slots__ = ("_output", "_steps")

    def __init__(self) -> None:
        """Begin with everything."""
        self._steps = MAX_STEPS
        self._output = MAX_OUTPUT

    def spend(self, characters: int = 0) -> None:
        """Take one step, and more for a long text."""
        self._steps -= 1 + characters // _TEXT_PER_STEP
        if self._steps < 0:
            raise RenderingFault(f"the template takes more than {MAX_STEPS} steps")

    def check_size(self, characters: int) -> None:
        """Refuse to make a text of this size."""
        if characters > MAX_OUTPUT:
            raise RenderingFault(f"a text would have more than {MAX_OUTPUT} characters")
        self.spend(characters)

    def hold(self, text: str) -> str:
        """Return a text, having paid for it."""
        self.check_size(len(text))
        return text

    def write(self, text: str) -> str:
        """Return a text for the output, having paid for it."""
        self._output -= len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self._output < 0:
            raise RenderingFault(f"the result has more than {MAX_OUTPUT} bytes")
        return text
