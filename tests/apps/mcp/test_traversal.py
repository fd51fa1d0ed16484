"""No known path traversal payload leaves the allowed folders through the tool read_file."""

from __future__ import annotations

from pathlib import Path

import pytest

from folders.test_escapes import payloads

from .conftest import SampleDatabase, text_of

SECRET = "what nobody may read"


@pytest.mark.anyio
async def test_no_known_payload_reads_the_secret_through_the_tool(
    sample: SampleDatabase, shared_data: Path
) -> None:
    secret = sample.files.parent / "secret.txt"
    secret.write_text(SECRET)
    (sample.files / "sub").mkdir()
    tried = dict.fromkeys(payloads(shared_data, secret))
    assert len(tried) > 5000
    codes: set[str] = set()
    dangerous = 0
    async with sample.client() as client:
        for payload in tried:
            answer = await client.call_tool("read_file", {"path": payload})
            text = text_of(answer)
            assert answer.is_error, payload
            assert text.startswith("[ERROR: "), payload
            assert SECRET not in text
            codes.add(text.partition(" ")[2].partition("]")[0])
            try:
                dangerous += (sample.files / payload).read_text() == SECRET
            except (OSError, ValueError):
                continue
    assert codes == {"NOT_FOUND", "ACCESS_DENIED", "BAD_PATH"}
    assert dangerous > 10, "these payloads would not escape even without the check"
