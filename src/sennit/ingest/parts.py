"""Reading the part of a file that a citation names, by the reader that indexes such files."""

from __future__ import annotations

from dataclasses import dataclass

from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.readers import SourceFile, reader_of
from sennit.places import Fragment


@dataclass(frozen=True, slots=True)
class FilePart:
    """The text of some units, and how many the file has."""

    text: str
    fragment: Fragment
    count: int


class MissingUnit(Exception):
    """Why a file does not have the units that were asked for."""


class TooMuchText(Exception):
    """The units have more text than was allowed."""


def read_part(path: str, data: bytes, fragment: Fragment, max_bytes: int) -> FilePart | None:
    """Return the text that a fragment names in a file, as its reader has it; None if its reader counts no units.

    Raises UnreadableFile as the reader does, MissingUnit, or TooMuchText.
    """
    reader = reader_of(path)
    units = None if reader.units is None else reader.units(SourceFile(path, path, data, 0))
    if units is None:
        return None
    if units.name != fragment.unit:
        raise MissingUnit(f"it has {units.name}s and no {fragment.unit}s")
    kept: list[str] = []
    size = count = 0
    try:
        for number, text in units.texts:
            count = max(count, number)
            if fragment.first <= number <= fragment.last and text:
                size += len(text.encode())
                if size > max_bytes:
                    raise TooMuchText
                kept.append(text)
    except (UnreadableFile, TooMuchText):
        raise
    except Exception as error:
        # The libraries of the formats raise many kinds for a damaged file, as when it is indexed.
        raise UnreadableFile(f"{type(error).__name__}: {error}"[:300]) from error
    if fragment.first > count:
        raise MissingUnit(f"it has {count:,} {units.name}s; there is no {units.name} {fragment.first:,}")
    last = min(fragment.last, count)
    text = "\n\n".join(kept)
    return FilePart(f"{text}\n" if text else "", fragment._replace(last=last), count)
