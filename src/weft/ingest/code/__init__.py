"""Code as entities: what a file defines, where, and what it uses."""

from weft.ingest.code.entities import CodeFile, Entity, Import, Role
from weft.ingest.code.parsing import parse
from weft.ingest.code.passages import CodeOptions, code_records, outline

__all__ = ["CodeFile", "CodeOptions", "Entity", "Import", "Role", "code_records", "outline", "parse"]
