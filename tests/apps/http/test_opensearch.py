"""The OpenSearch description of the page."""

from __future__ import annotations

from xml.etree import ElementTree

from apps.http.conftest import Service
from sennit.apps.http.assets import ASSETS
from sennit.apps.http.routes.opensearch import describe_search

NAMES = {"o": "http://a9.com/-/spec/opensearch/1.1/"}


def template_of(text: str) -> str:
    url = ElementTree.fromstring(text).find("o:Url", NAMES)
    assert url is not None
    return url.attrib["template"]


def test_a_browser_learns_how_to_search_the_page(service: Service) -> None:
    response = service.request("GET", "/opensearch.xml", None)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/opensearchdescription+xml")
    template = template_of(response.text)
    assert template == "http://127.0.0.1/#/search?q={searchTerms}"
    name = ElementTree.fromstring(response.text).find("o:ShortName", NAMES)
    assert name is not None
    assert len(name.text or "") <= 16
    assert b'<link rel="search" href="/opensearch.xml"' in ASSETS["/"].body


def test_a_strange_host_becomes_no_markup() -> None:
    assert template_of(describe_search('http://a"><x>&b')) == 'http://a"><x>&b/#/search?q={searchTerms}'
