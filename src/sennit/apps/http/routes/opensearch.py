"""The OpenSearch description, from which a browser learns to search the page from its address bar."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape, quoteattr

from fastapi import APIRouter, Request, Response

from sennit.apps.http.assets import PAGE_HEADERS
from sennit.apps.http.bodies import StrictRoute

router: Final = APIRouter(tags=["page"], route_class=StrictRoute)

PATH: Final = "/opensearch.xml"
CONTENT_TYPE: Final = "application/opensearchdescription+xml"

_TEMPLATE: Final = """<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>sennit</ShortName>
  <Description>{description}</Description>
  <InputEncoding>UTF-8</InputEncoding>
  <Image width="16" height="16" type="image/svg+xml">{image}</Image>
  <Url type="text/html" method="get" template={template}/>
</OpenSearchDescription>
"""


def describe_search(base_url: str) -> str:
    """Return the description of the page at an address. The query is in the fragment, which no server sees."""
    return _TEMPLATE.format(
        description=escape(f"Search with sennit at {base_url}"),
        image=escape(f"{base_url}/web/mark.svg"),
        template=quoteattr(f"{base_url}/#/search?q={{searchTerms}}"),
    )


@router.get(PATH, include_in_schema=False)
async def send_description(request: Request) -> Response:
    """The middleware has checked the Host header, which becomes part of the description."""
    base_url = f"{request.url.scheme}://{request.headers['host']}"
    return Response(describe_search(base_url), headers=dict(PAGE_HEADERS), media_type=CONTENT_TYPE)
