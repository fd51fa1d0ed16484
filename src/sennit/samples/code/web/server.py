"""A small web front end: sign-in, cookies, and a limit on attempts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RateLimiter:
    """Counts the sign-in attempts of a client and refuses further ones."""

    max_attempts: int = 5
    attempts: dict[str, int] = field(default_factory=dict)

    def allow(self, client: str) -> bool:
        """Return whether the client may try again."""
        self.attempts[client] = self.attempts.get(client, 0) + 1
        return self.attempts[client] <= self.max_attempts

    def reset(self, client: str) -> None:
        """Forget the attempts of a client that signed in."""
        self.attempts.pop(client, None)


def handle_login(limiter: RateLimiter, client: str, form: dict[str, str]) -> tuple[int, str]:
    """Answer a sign-in form."""
    if not limiter.allow(client):
        return 429, "Too many attempts. Wait a minute."
    if not form.get("name") or not form.get("password"):
        return 400, "Name and password are needed."
    limiter.reset(client)
    return 303, "/home"


def parse_cookie(header: str) -> dict[str, str]:
    """The cookies of a request header."""
    pairs = (part.strip().split("=", 1) for part in header.split(";") if "=" in part)
    return {name: value for name, value in pairs}
