"""Records that try to become markup, script or style on the page."""

from __future__ import annotations

import json
from pathlib import Path

import sennit
from sennit import Fact, Record, Turn

BLNS = Path(__file__).resolve().parents[4] / "shared" / "data" / "security" / "blns" / "blns.json"

PAYLOADS = (
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    '"><svg onload="window.pwned = 1">',
    "javascript:window.pwned=1",
    "</textarea><style>*{display:none}</style>",
    "{{constructor.constructor('window.pwned = 1')()}}",
    "' onfocus='window.pwned = 1' autofocus='",
    "<iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>",
    "\u202e\u0000\u2066reversed\u2069",
)


def naughty_strings() -> list[str]:
    """The big list of naughty strings, if it is there, and the payloads of this file."""
    listed = json.loads(BLNS.read_text()) if BLNS.is_file() else []
    return [*PAYLOADS, *(text for text in listed if text.strip())]


def hostile_records(path: Path, folder: Path) -> None:
    """Add a record for each payload as title, text, id, path, kind and metadata, and index a folder."""
    with sennit.open(path) as db:
        db.add(
            [
                Record(
                    id=f"{at} {text}"[:200].replace("\0", ""),
                    text=f"hostilestring {text}",
                    title=text.replace("\0", "") or "empty",
                    path=f"docs/{text}.md".replace("\0", ""),
                    kind=text[:60].replace("\0", ""),
                    collection="hostile",
                    metadata={"note": text},
                )
                for at, text in enumerate(naughty_strings())
            ]
        )
        db.index([folder])
        lines = [text.replace("\0", "") for text in PAYLOADS]
        db.add_turns([Turn(session=line, speaker=line, text=f"hostileturn {line}") for line in lines])
        db.add_facts(
            [Fact(subject=f"Mallory {line}", relation=line, object="Hostileville") for line in lines]
            + [
                Fact(
                    subject="Zorro", relation="hides in", object="Vineyard", sensitivity="private", scope="me"
                )
            ]
        )
        db.add_turns(
            [
                Turn(
                    session="hidden talk",
                    speaker="Zorro",
                    text="unseen words",
                    sensitivity="private",
                    scope="me",
                )
            ]
        )
