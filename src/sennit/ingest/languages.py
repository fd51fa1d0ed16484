"""The kind and language of a file, by its name."""

from __future__ import annotations

from typing import Final

FileKind = str
"""text, markdown, html, pdf, document (another packed format) or code."""

_MARKDOWN: Final = "md markdown mdx mdown mkd qmd rmd"
_HTML: Final = "html htm xhtml"
_TEXT: Final = "txt text rst adoc asciidoc org tex log csv tsv srt vtt eml mbox po pot bib textile wiki"
_CODE: Final = """
    python:py,pyi,pyx,pxd,pyw go:go javascript:js,mjs,cjs,jsx typescript:ts,tsx,mts,cts rust:rs java:java
    c:c,h cpp:cc,cpp,cxx,c++,hh,hpp,hxx,ipp,inl csharp:cs kotlin:kt,kts swift:swift scala:scala,sc ruby:rb,rake
    php:php perl:pl,pm,t lua:lua r:r julia:jl haskell:hs ocaml:ml,mli erlang:erl,hrl elixir:ex,exs
    clojure:clj,cljs,cljc,edn lisp:el,lisp,scm,rkt dart:dart zig:zig nim:nim d:d fortran:f,f90,f95,f03,for
    pascal:pas ada:adb,ads assembly:s,asm cuda:cu,cuh objective-c:m,mm groovy:groovy,gradle v:v,sv,svh vhdl:vhd
    shell:sh,bash,zsh,fish,ksh powershell:ps1,psm1 batch:bat,cmd awk:awk vim:vim tcl:tcl sql:sql
    graphql:graphql,gql protobuf:proto thrift:thrift css:css,scss,sass,less vue:vue svelte:svelte astro:astro
    json:json,jsonl,ndjson,json5,ipynb,geojson yaml:yaml,yml toml:toml ini:ini,cfg,conf,properties,env
    xml:xml,xsd,xsl,xslt,svg,plist,rss,wsdl cmake:cmake make:mk,mak nix:nix terraform:tf,tfvars,hcl
    starlark:bzl,bazel solidity:sol glsl:glsl,vert,frag,hlsl,wgsl jinja:j2,jinja,jinja2 diff:diff,patch
"""
_LANGUAGE_BY_NAME: Final = {
    "makefile": "make",
    "gnumakefile": "make",
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "cmakelists.txt": "cmake",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "jenkinsfile": "groovy",
    "build": "starlark",
    "workspace": "starlark",
    "justfile": "make",
}


def _build_extension_table() -> dict[str, tuple[FileKind, str]]:
    out: dict[str, tuple[FileKind, str]] = {}
    for kind, listed in (("markdown", _MARKDOWN), ("html", _HTML)):
        out |= dict.fromkeys(listed.split(), (kind, kind))
    out |= {extension: ("text", "text" if extension == "text" else extension) for extension in _TEXT.split()}
    out |= {"txt": ("text", "text"), "pdf": ("pdf", "")}
    out |= {extension: ("document", extension) for extension in ("docx", "epub", "parquet")}
    for entry in _CODE.split():
        language, _, extensions = entry.partition(":")
        out |= dict.fromkeys(extensions.split(","), ("code", language))
    return out


_BY_EXTENSION: Final = _build_extension_table()


def file_kind(path: str) -> tuple[FileKind, str]:
    """The kind of a file and its language, which is empty if the name does not tell."""
    name = path[path.rfind("/") + 1 :].lower()
    if name in _LANGUAGE_BY_NAME:
        return "code", _LANGUAGE_BY_NAME[name]
    stem, dot, extension = name.rpartition(".")
    return _BY_EXTENSION.get(extension, ("text", "")) if dot and stem else ("text", "")
