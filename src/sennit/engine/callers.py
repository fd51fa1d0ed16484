"""Callers and the policy, as the settings say."""

from __future__ import annotations

from sennit.filters import Filter
from sennit.privacy import Caller, Policy, Rule
from sennit.settings import Settings


def default_caller(settings: Settings) -> Caller:
    """Who asks when nobody says who asks."""
    privacy = settings.privacy
    return Caller(
        clearance=privacy.clearance,
        scopes=frozenset(privacy.scopes),
        tenant=privacy.tenant,
        everything=privacy.open,
    )


def policy_of(settings: Settings, rule: Rule | None = None) -> Policy:
    """Who may see what."""
    return Policy(settings.privacy.levels, settings.privacy.everyone, rule)


def default_audience(settings: Settings) -> Filter:
    """What is seen when nobody says who asks."""
    return policy_of(settings).audience(default_caller(settings))
