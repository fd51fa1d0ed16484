"""Write docs/reference/settings.md from the declarations of the settings: `python scripts/generate_settings_page.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from sennit.settings.registry import SECTIONS, SETTINGS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "settings.md"

HEAD = """\
# Settings

Every setting has a default, so a database needs no settings file. A value comes from one of these places; a later one
wins:

1. the default in the table below,
2. `sennit.toml` of the user (`~/.config/sennit/sennit.toml`),
3. `sennit.toml` in the current folder or the nearest parent folder that has one,
4. the environment variable `SENNIT_SECTION_NAME`, for example `SENNIT_SEARCH_LIMIT=20`,
5. an argument: `sennit.open("notes.sennit", search__limit=20)` or an option on the command line.

`sennit config` prints every setting with its value and where the value comes from. A value that is not allowed is an
error that names the place, the setting and the allowed values.

```toml
# sennit.toml
[search]
limit = 20

[embedding]
provider = "static"
```

A `sennit.toml` that sennit finds inside a folder is data, not configuration of the user's own. Settings marked
**trusted only** decide where data goes, which credential is used or which file is opened. sennit refuses them from a
found file until you trust its folder with `sennit config trust`.

`[recipes.NAME]` defines a [recipe of your own](recipes.md). `[attached.NAME]` describes a
[collection that somebody else owns](../how-to/attach-collections.md), and is trusted only.

This page is generated from the declarations in
[`settings/sections.py`](../../src/sennit/settings/sections.py) and
[`settings/servers.py`](../../src/sennit/settings/servers.py).
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for section in SECTIONS for line in section_lines(section))])


def section_lines(section: type) -> Iterator[str]:
    """A heading, the purpose and a table of one section."""
    name = section.name  # type: ignore[attr-defined]
    yield f"## `[{name}]`"
    yield ""
    yield (section.__doc__ or "").strip()
    yield ""
    yield "| setting | default | allowed | meaning |"
    yield "|---|---|---|---|"
    for key, setting in SETTINGS.items():
        if key.startswith(f"{name}."):
            trusted = " **Trusted only.**" if setting.spec.sensitive is True else ""
            if isinstance(setting.spec.sensitive, tuple):
                values = ", ".join(f"`{literal(value)}`" for value in setting.spec.sensitive)
                trusted = f" **Trusted only** for {values}."
            plain = setting.spec.plain_variable
            also = f" Also `{plain}` in the environment, below the prefixed name." if plain else ""
            yield (
                f"| `{key.removeprefix(name + '.')}` | `{literal(setting.default)}` | {cell(setting.allowed_values)} "
                f"| {cell(setting.spec.doc)}{also}{trusted} |"
            )
    yield ""


def literal(value: object) -> str:
    """A value as TOML writes it."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(literal(item) for item in value)}]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"


def cell(text: str) -> str:
    """A text that stays in its cell of the table."""
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
