"""Files named after natural languages, such as `locales/de.ts`, and what people call these languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

LOCALE_FOLDERS: Final = frozenset(
    ("i18n", "l10n", "lang", "langs", "language", "languages", "locale", "locales", "translations")
)
"""Folders whose files are named after natural languages: `locales/de.ts` is what a query calls German."""

LANGUAGES: Final[Mapping[str, str]] = dict(
    pair.split(":")
    for pair in """
    arabic:ar azerbaijani:az belarusian:be bengali:bn bulgarian:bg catalan:ca chinese:zh croatian:hr czech:cs danish:da
    dutch:nl english:en esperanto:eo estonian:et finnish:fi french:fr german:de greek:el hebrew:he hindi:hi hungarian:hu
    indonesian:id irish:ga italian:it japanese:ja korean:ko latvian:lv lithuanian:lt macedonian:mk malay:ms norwegian:no
    persian:fa polish:pl portuguese:pt romanian:ro russian:ru serbian:sr slovak:sk slovenian:sl spanish:es swedish:sv
    tamil:ta thai:th turkish:tr ukrainian:uk urdu:ur vietnamese:vi welsh:cy
    """.split()
)
"""The ISO 639-1 code of each language, by its English name."""

_LANGUAGE_OF_CODE: Final = {code: language for language, code in LANGUAGES.items()}


def locale_language(path: str) -> str | None:
    """Return the language of a file of translations, as English names it: german for locales/de.ts or locales/de-AT.ts."""
    folder, _, name = path.rpartition("/")
    if folder.rpartition("/")[2].casefold() not in LOCALE_FOLDERS:
        return None
    return _LANGUAGE_OF_CODE.get(re.split(r"[-_.]", name, maxsplit=1)[0].casefold())
