"""The colours of our style sheets, and how well they can be told apart (WCAG 2.2, relative luminance and contrast ratio)."""

from __future__ import annotations

import re


def schemes_of(*sheets: str) -> tuple[dict[str, str], dict[str, str]]:
    """The colours of the light scheme and of the dark one, by their names. Later sheets win."""
    light: dict[str, str] = {}
    dark: dict[str, str] = {}
    for sheet in sheets:
        for scheme, block in zip((light, dark), re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)[:2], strict=True):
            scheme |= re.findall(r"--([\w-]+): #(\w{3,6});", block)
    return light, {**light, **dark}


def contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
