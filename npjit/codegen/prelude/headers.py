"""The texts of the prelude's headers, paragraph by paragraph.

In: a header's name and the types that a unit must mention to get it. Out: its paragraphs' texts.
Those for bfloat16 are those of float16 with other names and other bits, but for the conversions and
what else stands in bfloat.h:

    texts_of("half.h", frozenset({"f16"}))     NJ_INLINE f16 nj_sqrt(f16 x) { ... }
    texts_of("half.h", BRAIN)                  NJ_INLINE bf16 nj_sqrt(bf16 x) { ... }
"""

from __future__ import annotations

import re
from pathlib import Path

BRAIN = frozenset({"bf16"})
# names, infinity, minus infinity and NaN
_BRAIN_NAMES = {
    "f16": "bf16",
    "nj_narrow": "nj_narrow_brain",
    "0x7c00": "0x7f80",
    "0xfc00": "0xff80",
    "0x7e00": "0x7fc0",
}
_RENAMED = re.compile(rf"\b({'|'.join(_BRAIN_NAMES)})\b")
# where the conversions end
_ARITHMETIC = "NJ_INLINE f16 operator+"


def texts_of(name: str, types: frozenset[str]) -> list[str]:
    """See the module's docstring."""
    texts = _paragraphs(name)
    if types != BRAIN:
        return texts
    conversions, *others = _paragraphs("bfloat.h")
    if _ARITHMETIC in texts[0]:
        arithmetic = texts[0][texts[0].index(_ARITHMETIC) :]
        texts = [f"{conversions}\n{arithmetic}", *texts[1:]]
    own = {_head(text): text for text in others}
    return [_renamed(own.get(_head(text), text)) for text in texts]


def _head(text: str) -> str:
    """What a paragraph declares first, up to its parameters."""
    lines = [line for line in text.splitlines() if not line.startswith("//")]
    return lines[0].partition("(")[0]


def _renamed(text: str) -> str:
    return _RENAMED.sub(lambda m: _BRAIN_NAMES[m[0]], text)


def _paragraphs(name: str) -> list[str]:
    _, *texts = Path(__file__).with_name(name).read_text().split("\n\n")
    return [text.strip("\n") for text in texts]
