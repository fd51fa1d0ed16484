"""A learned ranker: trees over the features of candidates, what it was trained on, and its form as JSON text.

A file is data: reading it executes nothing, and what is not a bounded sum of trees over known features is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from sennit.errors import InvalidInput
from sennit.ranking.trees import MAX_NUMBER, Tree, TreeSum
from sennit.records import Json
from sennit.results.trace import Floats

RANKER_FORMAT: Final = "sennit ranker"
RANKER_VERSION: Final = 1

MAX_RANKER_BYTES: Final = 4_000_000
"""About twice what the largest allowed ranker takes."""

MAX_FEATURES: Final = 2000
"""Public collections for learning to rank have up to 700."""

MAX_RANKER_NAME: Final = 100

_TREE_LISTS: Final = ("features", "thresholds", "left", "right", "missing_left", "leaves", "means")


@dataclass(frozen=True, slots=True)
class RankerScope:
    """Whose feedback a ranker was trained on, and so whose searches it may rank."""

    tenant: str | None = None
    """None for all tenants."""
    caller: str | None = None
    """The identity of one caller; None for all callers of the tenant."""

    @property
    def about(self) -> str:
        """Whose feedback it is, in words."""
        if self.tenant is None:
            return "everyone"
        of_tenant = f"the tenant {self.tenant!r}" if self.tenant else "the database without a tenant"
        return f"all callers of {of_tenant}" if self.caller is None else f"one caller of {of_tenant}"

    def admits(self, tenant: str, caller: str) -> bool:
        """Return whether a ranker of this scope may rank a caller's searches."""
        return self.tenant in (None, tenant) and self.caller in (None, caller)


EVERYONE: Final = RankerScope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What a ranker was trained on. It ranks only searches that are alike in these."""

    recipe: str
    """The name of the recipe whose candidates it ranks."""
    recipe_digest: str
    """Of everything in the recipe that decides the features."""
    model: str | None
    """The fingerprint of the embedding model."""
    contract: int
    """The version of the ranking contract."""
    data: str
    """Where the judgements come from: names of collections, or feedback."""
    queries: int
    scope: RankerScope = EVERYONE
    examination: Mapping[str, Json] = field(default_factory=dict)
    """How position bias was corrected; empty for judgements, which have none."""

    def difference(self, recipe_digest: str, model: str | None, contract: int) -> str:
        """Return in words what is different in a search; empty if it is alike."""
        if recipe_digest != self.recipe_digest:
            return f"it was trained on another form of the recipe {self.recipe!r}"
        if model != self.model:
            return f"it was trained with the embedding model {self.model}, and the database has {model}"
        if contract != self.contract:
            return f"it was trained on version {self.contract} of the ranking contract, and this is version {contract}"
        return ""

    def to_dict(self) -> dict[str, Json]:
        return {
            "recipe": self.recipe,
            "recipe_digest": self.recipe_digest,
            "model": self.model,
            "contract": self.contract,
            "data": self.data,
            "queries": self.queries,
            "scope": {"tenant": self.scope.tenant, "caller": self.scope.caller, "about": self.scope.about},
            **({"examination": dict(self.examination)} if self.examination else {}),
        }


def check_usable(training: Training) -> None:
    """Raise InvalidInput for the training of a ranker that no search can use."""
    if not training.recipe_digest:
        raise InvalidInput(
            f"No search can use a ranker that is learned from {training.data}: features in a file do not say which recipe "
            "and which embedding model they come from. With --output or --dry-run, 'sennit learn --svmlight' measures it; "
            "for searches, learn from the feedback of the database or from folders."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """A sum of trees that scores candidates by their features, starting from the score of the recipe."""

    name: str
    features_version: int
    """The version of `ranking.features`; 0 for features of other programs."""
    feature_names: tuple[str, ...]
    trees: TreeSum
    base_feature: str
    """The feature that the sum starts from, so that a tree need not learn the recipe's ranking again."""
    base_weight: float
    training: Training
    evidence: Mapping[str, Json] = field(default_factory=dict)
    """How it compares with the recipe on queries that it was not trained on."""
    created: str = ""

    @property
    def scope(self) -> RankerScope:
        """Whose searches it may rank."""
        return self.training.scope

    def scores(self, features: Floats) -> Floats:
        """Return the score of each row of features."""
        return self._base(features) + self.trees.scores(features)

    def shares(self, features: Floats) -> Floats:
        """Return what each feature adds to each row's score, by the attribution of `TreeSum.shares`.

        With what every row gets, which is no reason for an order, they add up to the score.
        """
        shares, _ = self.trees.shares(features)
        if self.base_feature:
            shares[:, self.feature_names.index(self.base_feature)] += self._base(features)
        return shares

    def _base(self, features: Floats) -> Floats:
        if not self.base_feature:
            return features[:, 0] * 0.0 if features.shape[1] else features.sum(axis=1)
        column = features[:, self.feature_names.index(self.base_feature)]
        out: Floats = self.base_weight * column
        out[out != out] = 0.0
        return out

    @property
    def difference(self) -> float:
        """How much better than the recipe it was on held-out queries; 0 if the file does not say."""
        value = self.evidence.get("difference")
        return float(value) if isinstance(value, (int, float)) else 0.0

    def summary(self) -> dict[str, Json]:
        """Return what it is, without its trees."""
        return {
            "name": self.name,
            "created": self.created,
            "features_version": self.features_version,
            "trees": len(self.trees.trees),
            "training": self.training.to_dict(),
            "evidence": dict(self.evidence),
        }

    def to_json(self) -> str:
        """Return the text that `ranker_from_json` reads back."""
        value = {
            "format": RANKER_FORMAT,
            "version": RANKER_VERSION,
            "name": self.name,
            "created": self.created,
            "features_version": self.features_version,
            "feature_names": list(self.feature_names),
            "base": {"feature": self.base_feature, "weight": self.base_weight},
            "training": self.training.to_dict(),
            "evidence": dict(self.evidence),
            "trees": [],
        }
        # One line for each tree, so that a difference between two files can be read.
        head, _, _ = json.dumps(value, indent=1).rpartition("[]")
        trees = ",\n".join(
            json.dumps({name: list(getattr(tree, name)) for name in _TREE_LISTS}) for tree in self.trees.trees
        )
        return f"{head}[\n{trees}\n]\n}}\n"


def ranker_from_json(text: str, known_names: Sequence[str] | None = None) -> Ranker:
    """Read a ranker; raise InvalidInput for anything else. `known_names` are the features that it may have, in order."""
    if len(text) > MAX_RANKER_BYTES:
        raise InvalidInput(
            f"The ranker has {len(text):,} characters, and {MAX_RANKER_BYTES:,} are allowed; train it with fewer trees"
        )
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The ranker is not JSON ({error})") from error
    if not isinstance(value, dict) or value.get("format") != RANKER_FORMAT:
        raise InvalidInput("This is no ranker; 'sennit learn' writes one")
    if value.get("version") != RANKER_VERSION:
        raise InvalidInput(
            f"The ranker has the version {value.get('version')!r}, and this program reads {RANKER_VERSION}; train it again"
        )
    try:
        return _read(value, known_names)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidInput(f"The ranker cannot be used: {what}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def _read(value: Mapping[str, Any], known_names: Sequence[str] | None) -> Ranker:
    names = value["feature_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise ValueError("feature_names must be a list of names")
    if not 1 <= len(names) <= MAX_FEATURES or len(set(names)) != len(names):
        raise ValueError(f"feature_names must have from 1 to {MAX_FEATURES:,} different names")
    if known_names is not None and tuple(names) != tuple(known_names):
        different = next((name for name in names if name not in known_names), "")
        raise ValueError(
            f"it has the feature {different!r}, which this program does not know"
            if different
            else "its features are not those of this program, in their order"
        )
    base = _object(value["base"], "base")
    base_feature = _text(base["feature"], "base.feature")
    if base_feature and base_feature not in names:
        raise ValueError(f"base.feature is {base_feature!r}, which is no feature of it")
    entries = value["trees"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("trees must be a list of objects")
    trees = [Tree(*(_list(entry[name], name) for name in _TREE_LISTS)) for entry in entries]
    return Ranker(
        name=check_ranker_name(value["name"]),
        features_version=_count(value["features_version"], "features_version"),
        feature_names=tuple(names),
        trees=TreeSum(trees, len(names)),
        base_feature=base_feature,
        base_weight=_number(base["weight"], "base.weight"),
        training=_read_training(_object(value["training"], "training")),
        evidence=_object(value["evidence"], "evidence"),
        created=_text(value["created"], "created"),
    )


def _read_training(value: Mapping[str, Any]) -> Training:
    scope = _object(value["scope"], "scope")
    return Training(
        recipe=_text(value["recipe"], "recipe"),
        recipe_digest=_text(value["recipe_digest"], "recipe_digest"),
        model=_optional_text(value["model"], "model"),
        contract=_count(value["contract"], "contract"),
        data=_text(value["data"], "data"),
        queries=_count(value["queries"], "queries"),
        scope=RankerScope(
            _optional_text(scope["tenant"], "scope.tenant"), _optional_text(scope["caller"], "scope.caller")
        ),
        examination=_object(value.get("examination", {}), "examination"),
    )


def check_ranker_name(name: object) -> str:
    """Return the name of a ranker; raise InvalidInput for what cannot be one."""
    if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= MAX_RANKER_NAME:
        raise InvalidInput(f"The name of a ranker has from 1 to {MAX_RANKER_NAME} printable characters")
    return name


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be an object")
    return value


def _list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{name} of a tree must be a list")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text")
    return value


def _optional_text(value: object, name: str) -> str | None:
    return None if value is None else _text(value, name)


def _count(value: object, name: str) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{name} must be a whole number of at least 0")
    return value


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= MAX_NUMBER:
        raise ValueError(f"{name} must be a number, not {value!r}")
    return float(value)
