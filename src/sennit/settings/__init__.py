"""Settings: sennit.toml, the environment and arguments, in rising precedence, each value checked when read.

Sources, from the weakest: the default; the user's own `sennit.toml` in the configuration folder; the file that
was named (argument or SENNIT_CONFIG) or else found, as the nearest `sennit.toml` at or above the starting folder;
SENNIT_<SECTION>_<KEY>; arguments.

A file that was merely found may have come with a stranger's folder. It is data: what decides where text is
sent, which credential is used or which file is opened is refused from it until the user trusts the folder.
"""

from sennit.settings.reading import load
from sennit.settings.rules import Setting
from sennit.settings.sections import (
    EmbeddingSettings,
    FilesSettings,
    KeywordSettings,
    LanguageProvider,
    LanguageSettings,
    Metric,
    PrivacySettings,
    Provider,
    SearchSettings,
    StoreSettings,
)
from sennit.settings.table import SETTINGS, SettingRow, Settings, describe
from sennit.settings.trust import config_folder, distrust, trust, trusted

__all__ = [
    "SETTINGS",
    "EmbeddingSettings",
    "FilesSettings",
    "KeywordSettings",
    "LanguageProvider",
    "LanguageSettings",
    "Metric",
    "PrivacySettings",
    "Provider",
    "SearchSettings",
    "Setting",
    "SettingRow",
    "Settings",
    "StoreSettings",
    "config_folder",
    "describe",
    "distrust",
    "load",
    "trust",
    "trusted",
]
