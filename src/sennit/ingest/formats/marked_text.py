"""Text of a packed format as Markdown, with the unit of the file that each line is from: a cell, a paragraph, a chapter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sennit.ingest.pages import PageOptions, page_records, parse_page
from sennit.ingest.units import Units
from sennit.places import Fragment
from sennit.records import FRAGMENT_FIELD, Record

FENCE = "```"


@dataclass(slots=True)
class MarkedText:
    """Lines of Markdown, each with the number of its unit, counted from 1."""

    unit: str
    """What is counted, such as `cell`; citations name it."""
    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def add(self, number: int, lines: Iterable[str]) -> None:
        """Add the lines of a unit, and a blank line after them."""
        self.add_block([*((number, line) for line in lines), (number, "")])

    def add_block(self, lines: Iterable[tuple[int, str]]) -> None:
        """Add lines of several units that belong together, each with the number of its unit."""
        for number, line in lines:
            self.lines.append(line)
            self.numbers.append(number)

    def fragment(self, first_line: int, last_line: int) -> str:
        """The fragment of a citation for these lines, counted from 1: `cell=3`, or `cell=3-5`."""
        first, last = self.numbers[first_line - 1], self.numbers[last_line - 1]
        return str(Fragment(self.unit, first, last))

    def units(self) -> Units:
        """Return the Markdown of each unit."""
        by_number: dict[int, list[str]] = {}
        for number, line in zip(self.numbers, self.lines, strict=True):
            by_number.setdefault(number, []).append(line)
        return Units(
            self.unit, ((number, "\n".join(lines).strip("\n")) for number, lines in by_number.items())
        )

    def records(
        self, place: str, *, collection: str, options: PageOptions, timestamp: datetime | None
    ) -> list[Record]:
        """The chunks of the page, each cited by its unit. They have no lines, because the file has none to show."""
        page = parse_page("\n".join(self.lines), path=place, options=options)
        out = page_records(page, path=place, collection=collection, timestamp=timestamp)
        for record in out:
            assert record.lines is not None
            fragment = self.fragment(*record.lines)
            # The records are new, so they are changed in place.
            object.__setattr__(record, "lines", None)
            object.__setattr__(record, "metadata", {**record.metadata, FRAGMENT_FIELD: fragment})
        return out


def fenced(text: str, language: str = "") -> list[str]:
    """Code as lines of Markdown, in a fence that it cannot close."""
    fence = FENCE
    while fence in text:
        fence += "`"
    return [f"{fence}{language}", *text.splitlines(), fence]
