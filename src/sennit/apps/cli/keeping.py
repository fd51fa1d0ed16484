"""Small commands around records: `sennit get`, `sennit remove`, `sennit recipes`."""

from __future__ import annotations

import json

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Session, common, load_settings, pass_session
from sennit.errors import NotFound


@click.command()
@click.argument("record_id", metavar="ID", type=TEXT)
@common
@pass_session
def get(session: Session, record_id: str) -> None:
    """Show the record ID with all its fields."""
    from sennit.engine.callers import default_audience
    from sennit.filters import matches
    from sennit.records import full_id

    settings = load_settings()
    name = full_id(settings.privacy.tenant, record_id)
    store = session.store()
    try:
        record = store.get([name]).get(name)
    finally:
        store.close()
    if record is None or not matches(default_audience(settings), record):
        raise NotFound(f"There is no record {record_id!r}.")
    if session.json:
        output.emit(record.to_dict())
        return
    values = record.to_dict()
    text = values.pop("text")
    for name, value in values.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        output.say(f"{click.style(name + ':', bold=True)} {output.one_line(shown)}")
    output.say()
    output.say(output.plain(str(text)))


@click.command()
@click.argument("ids", metavar="ID...", type=TEXT, nargs=-1, required=True)
@click.option("--missing-ok", is_flag=True, help="Do not mind ids that are not there.")
@common
@pass_session
def remove(session: Session, ids: tuple[str, ...], missing_ok: bool) -> None:
    """Remove records by id: all of them, or none when one is not there."""
    with session.open() as db:
        missing = [record_id for record_id in dict.fromkeys(ids) if db.get(record_id) is None]
        if missing and not missing_ok:
            raise NotFound(f"There is no record {missing[0]!r}; nothing was removed. See --missing-ok.")
        removed = db.remove(ids, caller=db.caller)
    if session.json:
        output.emit({"removed": removed, "missing": missing})
    else:
        output.note(session, f"Removed {output.counted(removed, 'record')}.")


@click.command()
@common
@pass_session
def recipes(session: Session) -> None:
    """List the recipes: the built-in ones and those of your sennit.toml."""
    from sennit.recipes import all_recipes, find_recipe

    settings = load_settings()
    known = all_recipes(settings)
    default = find_recipe(settings.search.recipe, known).name
    if session.json:
        output.emit(
            {
                "recipes": [
                    {
                        "name": name,
                        **recipe.to_dict(),
                        "default": name == default,
                        "built_in": name not in settings.recipes,
                    }
                    for name, recipe in known.items()
                ]
            }
        )
        return
    output.table(
        ("recipe", "sources", "about"),
        [
            (
                f"{name} *" if name == default else name,
                " + ".join(use.name for use in recipe.sources),
                recipe.about,
            )
            for name, recipe in known.items()
        ],
    )
    output.note(session, "* used when no recipe is named")
