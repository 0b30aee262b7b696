"""LIKE patterns: `%` is any text, `_` any character, and a backslash takes what follows as it is.

Matched by hand in time proportional to text times pattern; as a regular expression, many `%` could take for ever.
"""

from __future__ import annotations

from typing import Final

_ANY_TEXT: Final = -1
_ANY_CHARACTER: Final = -2


def matches(text: str, pattern: str, *, ignores_case: bool = False) -> bool:
    """Tell whether a text is as a pattern says."""
    if ignores_case:
        text, pattern = text.lower(), pattern.lower()
    steps, characters = _read(pattern), [ord(character) for character in text]
    at = step = 0
    resume_at, resume_step = 0, -1  # where the last `%` goes on, should what follows it not fit
    while at < len(characters):
        wanted = steps[step] if step < len(steps) else None
        if wanted == _ANY_TEXT:
            resume_at, resume_step = at, step
            step += 1
        elif wanted in (_ANY_CHARACTER, characters[at]):
            at, step = at + 1, step + 1
        elif resume_step >= 0:
            resume_at += 1
            at, step = resume_at, resume_step + 1
        else:
            return False
    return all(wanted == _ANY_TEXT for wanted in steps[step:])


def _read(pattern: str) -> list[int]:
    """Take a pattern apart: the number of each character, or what stands for several."""
    steps = []
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            steps.append(_ANY_TEXT)
        elif character == "_":
            steps.append(_ANY_CHARACTER)
        else:
            steps.append(ord(next(characters, "\\") if character == "\\" else character))
    return steps
