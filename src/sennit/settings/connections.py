"""The settings that every connection has: the address of a server, and the environment variable of a credential."""

from __future__ import annotations

from typing import Final

from sennit.settings.setting import FieldSpec

HTTP: Final = "(?i:https?)"


def address(doc: str, schemes: str = HTTP, example: str = "") -> FieldSpec:
    """The address of a server, or several; only one of HTTP has a path. A credential never stands in it."""
    path = r"(/[^\x00-\x20\x7f@?#\\]*)?" if schemes == HTTP else "/?"
    what = f"an address such as {example}" if example else "an http:// or https:// address"
    return FieldSpec(
        doc,
        pattern=rf"{schemes}://[^\x00-\x20\x7f/@?#\\]+{path}",
        expected=f"{what} without user, password, query or fragment",
        redact_pattern="[@?#]",
        sensitive=True,
    )


def variable_of(what: str, example: str) -> FieldSpec:
    """The name of the environment variable that holds a credential."""
    return FieldSpec(
        f"The name of the environment variable that holds {what}; empty without one.",
        pattern=r"[A-Za-z_][A-Za-z0-9_]*|",
        expected=f"the name of an environment variable such as {example}, and not its value",
        redact_pattern=".",
        names_variable=True,
        sensitive=True,
    )
