"""A language model on loopback that calls a tool, reads its result, and answers with what it cites."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from embedding.server import ModelServer, Request, Response, as_json

CITATION = re.compile(r"[\w./-]*\w+\.md:\d+(?:-\d+)?")


class AgentModelServer(ModelServer):
    """Speaks chat completions. It knows nothing itself: its answer is made of the result of the tool."""

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def respond(self, request: Request) -> Response:
        messages: Any = request.body["messages"]
        tools: Any = request.body.get("tools")
        if tools is None:
            return self._answer({"role": "assistant", "content": _react(messages)})
        if messages[-1]["role"] == "tool":
            return self._answer({"role": "assistant", "content": answer_from(str(messages[-1]["content"]))})
        question = _text([one for one in messages if one["role"] == "user"][-1])
        call = {
            "id": "call-1",
            "type": "function",
            "function": {"name": tools[0]["function"]["name"], "arguments": json.dumps({"query": question})},
        }
        return self._answer({"role": "assistant", "content": None, "tool_calls": [call]})

    def _answer(self, message: dict[str, Any]) -> Response:
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        return as_json(
            {
                "id": "1",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": "small",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )


def answer_from(text: str) -> str:
    """Answer with the first sentence that names the ferry's time, and the citation in the text."""
    said = re.search(r"The ferry[^.]*\.", text)
    cited = CITATION.search(text)
    return f"{said[0] if said else 'I do not know.'} [{cited[0] if cited else 'no source'}]"


def _react(messages: list[dict[str, Any]]) -> str:
    """The same in the text form of a ReAct agent, for a model without tool calls."""
    observed = [_text(one) for one in messages if _text(one).startswith("Observation:")]
    if observed:
        return f"Thought: I can answer without using any more tools.\nAnswer: {answer_from(observed[-1])}"
    question = _text([one for one in messages if one["role"] == "user"][-1])
    action = json.dumps({"input": question})
    return f"Thought: I need the notes.\nAction: notes\nAction Input: {action}"


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())
