"""Characters that a reader does not see, written down from the Unicode standard and not from the code under test."""

from __future__ import annotations


def characters(*ranges: tuple[int, int]) -> tuple[str, ...]:
    return tuple(chr(code) for first, last in ranges for code in range(first, last + 1))


DEFAULT_IGNORABLE = characters(
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Default_Ignorable_Code_Point, from DerivedCoreProperties.txt of Unicode 16."""

INVISIBLE = characters((0xFFF9, 0xFFFB), (0x2800, 0x2800), (0x13430, 0x1343F))
"""Further characters that are drawn as nothing."""

BIDI = characters((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069))
"""Controls of the bidirectional algorithm."""
