"""Settings from sennit.toml, the environment and arguments, in rising precedence; each value is checked when read.

The sources, from the lowest precedence:

1. the default;
2. the user's own `sennit.toml` in the configuration folder;
3. a named file (argument or SENNIT_CONFIG), or else the nearest `sennit.toml` at or above the starting folder;
4. SENNIT_<SECTION>_<KEY>;
5. arguments.

A file that was found may have come with a cloned folder, so it is untrusted data. Settings that decide where text is
sent, which credential is used or which file is opened are refused from it until the user trusts the folder.
"""

from sennit.settings.loader import FILE_NAME, find_nearest, load_settings
from sennit.settings.own_file import SettingsFile, table_to_toml
from sennit.settings.registry import SETTINGS, SettingRow, Settings, describe_settings
from sennit.settings.sections import (
    EmbeddingSettings,
    FeedbackSettings,
    FilesSettings,
    IngestSettings,
    KeywordSettings,
    LanguageProvider,
    LanguageSettings,
    Metric,
    PrivacySettings,
    Provider,
    Recency,
    SearchSettings,
    StoreSettings,
)
from sennit.settings.setting import Setting
from sennit.settings.trust import config_folder, distrust_folder, is_trusted, trust_folder

__all__ = [
    "FILE_NAME",
    "SETTINGS",
    "EmbeddingSettings",
    "FeedbackSettings",
    "FilesSettings",
    "IngestSettings",
    "KeywordSettings",
    "LanguageProvider",
    "LanguageSettings",
    "Metric",
    "PrivacySettings",
    "Provider",
    "Recency",
    "SearchSettings",
    "Setting",
    "SettingRow",
    "Settings",
    "SettingsFile",
    "StoreSettings",
    "config_folder",
    "describe_settings",
    "distrust_folder",
    "find_nearest",
    "is_trusted",
    "load_settings",
    "table_to_toml",
    "trust_folder",
]
