"""The MCP server: lists and calls the tools. The database is opened, and anything heavy imported, at the first call."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext

import sennit
from sennit.context.sanitize import one_line
from sennit.tools import INSTRUCTIONS, TOOLS, Tool, run_tool
from sennit.tools.handlers import ToolCall

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.repositories.tokens import Token

MAX_CONCURRENT_CALLS: Final = 16
"""Calls that run at once. Further calls wait, so that a burst does not start a thread for each."""

PROGRESS_SECONDS: Final = 1.0
"""Interval between two progress notifications of a long call."""

TOKEN_KEY: Final = "sennit.token"  # noqa: S105 - the name of a key
"""The key in the ASGI scope under which an HTTP request carries its token."""

MAX_CLIENT_NAME_CHARACTERS: Final = 80

ROOTS_SECONDS: Final = 2.0
"""How long a client has to say which folders it works in."""


class LazyDatabase:
    """The database of a server: opened at the first use, closed with the server."""

    def __init__(self, open_database: Callable[[], Database]) -> None:
        self._open = open_database
        self._lock = threading.Lock()
        self._db: Database | None = None

    def get(self) -> Database:
        with self._lock:
            if self._db is None:
                self._db = self._open()
            return self._db

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


Context = ServerRequestContext[LazyDatabase, Any]


def make_server(
    database: LazyDatabase,
    *,
    read_only: bool = False,
    project: str | None = None,
    folder: str | None = None,
    progress_seconds: float = PROGRESS_SECONDS,
) -> Server[LazyDatabase]:
    """Build a server over a database. The way it is opened, or the token, decides what a caller may see.

    A call that names no project is limited to `project`, or else to the one that a root of the client or `folder` is in.
    """
    descriptions = {tool.name: _describe(tool) for tool in TOOLS}
    limiter = anyio.CapacityLimiter(MAX_CONCURRENT_CALLS)

    @asynccontextmanager
    async def lifespan(_: Server[LazyDatabase]) -> AsyncIterator[LazyDatabase]:
        try:
            yield database
        finally:
            database.close()

    def can_write(token: Token | None) -> bool:
        return not read_only and (token is None or token.write)

    def available_tools(token: Token | None) -> dict[str, Tool]:
        return {tool.name: tool for tool in TOOLS if can_write(token) or not tool.writes}

    async def list_tools(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[descriptions[name] for name in available_tools(_token(ctx))])

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        client_name, token = _client_name(ctx), _token(ctx)
        tool = available_tools(token).get(params.name)
        if tool is None:
            known = ", ".join(available_tools(token))
            raise MCPError(
                types.INVALID_PARAMS, f"There is no tool {one_line(params.name)[:60]!r} here. Tools: {known}."
            )

        takes_project = "project" in tool.input_schema["properties"]
        folders = await _client_folders(ctx, folder) if takes_project and project is None else ()

        def work() -> types.CallToolResult:
            def make_call(arguments: dict[str, Any]) -> ToolCall:
                db = database.get()
                caller = token.caller if token is not None else replace(db.caller, name=client_name)
                source = f"mcp:{client_name}" if client_name else "mcp"
                if takes_project and project is not None:
                    arguments.setdefault("project", project)
                return ToolCall(db, caller, source, arguments, can_write(token), folders)

            return _run_tool(tool, params.arguments, make_call)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_report_progress, ctx, tool, progress_seconds)
            # A cancelled call returns at once. Its thread ends by itself, at its deadline at the latest.
            result = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
            tasks.cancel_scope.cancel()
        return result

    return Server(
        "sennit",
        version=sennit.__version__,
        title="sennit",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _describe(tool: Tool) -> types.Tool:
    reads_only = not (tool.writes or tool.stores_result)
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=reads_only,
            # The protocol gives these two a meaning only for a tool that writes.
            destructive_hint=None if reads_only else tool.destructive,
            idempotent_hint=None if reads_only else tool.idempotent,
            open_world_hint=False,
        ),
    )


def _run_tool(
    tool: Tool, given: dict[str, Any] | None, make_call: Callable[[dict[str, Any]], ToolCall]
) -> types.CallToolResult:
    result = run_tool(tool, given, make_call)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=block) for block in result.blocks],
        structured_content=result.structured_content,
        is_error=result.is_error,
    )


async def _client_folders(ctx: Context, folder: str | None) -> tuple[str, ...]:
    """The folders that the client works in: its roots if it has any, else the folder of the server."""
    params = ctx.session.client_params
    if params is None or params.capabilities.roots is None:
        return () if folder is None else (folder,)
    roots: tuple[str, ...] = ()
    with anyio.move_on_after(ROOTS_SECONDS), suppress(MCPError):
        found = await ctx.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        roots = tuple(_path_of(str(root.uri)) for root in found.roots)
    return roots or (() if folder is None else (folder,))


def _path_of(uri: str) -> str:
    """The path of a file URI."""
    return unquote(urlsplit(uri).path)


async def _report_progress(ctx: Context, tool: Tool, interval_seconds: float) -> None:
    """Send progress notifications while a call runs, if the client asked for them."""
    started = anyio.current_time()
    while True:
        await anyio.sleep(interval_seconds)
        seconds = anyio.current_time() - started
        await ctx.session.report_progress(seconds, None, f"{tool.title}: {seconds:.0f} s so far")


def _token(ctx: Context) -> Token | None:
    """The token of the request, if it has one."""
    token: Token | None = ctx.request.scope.get(TOKEN_KEY) if ctx.request is not None else None
    return token


def _client_name(ctx: Context) -> str:
    params = ctx.session.client_params
    return one_line(params.client_info.name)[:MAX_CLIENT_NAME_CHARACTERS] if params else ""
