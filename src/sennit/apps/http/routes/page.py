"""The web page, and what only a page needs: sign-in, who the caller is, the recipes, and names to complete."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from sennit.apps.http import responses
from sennit.apps.http.assets import ASSETS, PAGE_HEADERS
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import HttpError
from sennit.apps.http.request_context import ReadRequest
from sennit.apps.http.serializers import encode_json
from sennit.records import MAX_ID_BYTES

router: Final = APIRouter(tags=["page"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

_FORBIDDEN: Final = {"model": responses.ErrorResponse, "description": "forbidden"}

MAX_COMPLETIONS: Final = 50


async def _send_asset(request: Request) -> Response:
    asset = ASSETS[request.url.path]
    headers = {**PAGE_HEADERS, "content-type": asset.content_type, "vary": "accept-encoding"}
    accepted = {
        coding.partition(";")[0].strip() for coding in request.headers.get("accept-encoding", "").split(",")
    }
    if "gzip" not in accepted:
        return Response(asset.body, headers=headers)
    return Response(asset.compressed, headers=headers | {"content-encoding": "gzip"})


for _path in ASSETS:
    router.add_api_route(_path, _send_asset, include_in_schema=False)


@router.post(
    "/v1/sign-in",
    summary="Exchange a one-time code",
    responses={200: {"model": responses.SignInResponse}, 403: _FORBIDDEN},
)
async def sign_in(context: ReadRequest) -> Response:
    """Exchange the one-time code of `sennit open`, sent as the bearer token, for a token that works until it ends."""
    token = context.principal.session_token
    if not token:
        raise HttpError(
            403, "The bearer token is not a one-time code of 'sennit open'. Use the token itself."
        )
    return Response(encode_json({"token": token}), media_type=JSON_TYPE)


@router.get("/v1/caller", summary="Show the caller", responses={200: {"model": responses.CallerResponse}})
async def show_caller(context: ReadRequest) -> Response:
    """Who the token authenticates, and for whom the caller may act with the header `X-Sennit-As`."""

    def work() -> bytes:
        principal, caller = context.principal, context.caller
        signed_in = principal.acting or caller
        others = context.db.admin.callers_for(signed_in)
        return encode_json(
            {
                "token": principal.token_name,
                "write": principal.can_write,
                "acting": principal.acting is not None,
                "may_act": signed_in.everything,
                "clearance": caller.clearance,
                "scopes": sorted(caller.scopes),
                "everything": caller.everything,
                "saves_recipes": principal.recipe_file is not None,
                "levels": list(context.db.admin.levels) if signed_in.everything else [],
                "callers": [
                    {
                        "token": name,
                        "clearance": other.clearance,
                        "scopes": sorted(other.scopes),
                        "everything": other.everything,
                    }
                    for name, other in others.items()
                ],
            }
        )

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get("/v1/fields", summary="Complete fields", responses={200: {"model": responses.FieldsResponse}})
async def fields(
    context: ReadRequest,
    name: Annotated[
        str,
        Query(
            max_length=MAX_ID_BYTES, description="List the values of this field. Default: list the fields."
        ),
    ] = "",
    prefix: Annotated[str, Query(max_length=MAX_ID_BYTES, description="Only what begins like this.")] = "",
) -> Response:
    """Names of fields, or values of one field, of records that the caller may see: what a filter can compare."""

    def work() -> bytes:
        if name:
            found = context.db.field_values(name, prefix=prefix, limit=MAX_COMPLETIONS, caller=context.caller)
            return encode_json({"values": [one.to_dict() for one in found]})
        names = context.db.field_names(prefix=prefix, caller=context.caller)
        return encode_json({"fields": list(names[:MAX_COMPLETIONS])})

    return Response(await context.run(work), media_type=JSON_TYPE)
