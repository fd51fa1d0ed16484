"""No known payload leads out of the allowed folders by way of the tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from folders.test_escapes import payloads

from .conftest import Place, text_of

SECRET = "what nobody may read"


@pytest.mark.anyio
async def test_no_known_payload_reads_the_secret_through_the_tool(place: Place, shared_data: Path) -> None:
    secret = place.files.parent / "secret.txt"
    secret.write_text(SECRET)
    (place.files / "sub").mkdir()
    tried = dict.fromkeys(payloads(shared_data, secret))
    assert len(tried) > 5000
    codes: set[str] = set()
    dangerous = 0
    async with place.client() as client:
        for payload in tried:
            answer = await client.call_tool("read_file", {"path": payload})
            text = text_of(answer)
            assert answer.is_error, payload
            assert text.startswith("[ERROR: "), payload
            assert SECRET not in text
            codes.add(text.partition(" ")[2].partition("]")[0])
            try:
                dangerous += (place.files / payload).read_text() == SECRET
            except (OSError, ValueError):
                continue
    assert codes == {"NOT_FOUND", "ACCESS_DENIED", "BAD_PATH"}
    assert dangerous > 10, "these payloads would not even harm a careless reader"
