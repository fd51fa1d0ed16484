"""A small agent in each framework's own way: it answers from an indexed folder, with a citation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import sennit
from integrations import need
from integrations.agent_server import AgentModelServer

QUESTION = "When does the ferry leave?"


@pytest.fixture
def model() -> Iterator[AgentModelServer]:
    server = AgentModelServer()
    yield server
    server.close()


def check(answer: str, model: AgentModelServer) -> None:
    """The answer is from the folder and cites the file; the model was asked twice: for a call, then for words."""
    assert "The ferry leaves at noon, on Sundays at two." in answer
    assert "ferry.md:1-3]" in answer
    assert len(model.requests) == 2


def test_an_agent_of_langchain(notes: sennit.Database, model: AgentModelServer) -> None:
    need("langchain_core", "langchain")
    need("openai", "haystack")
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.prompts import PromptTemplate
    from langchain_core.tools import create_retriever_tool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from openai import OpenAI

    from sennit.integrations.langchain import SennitRetriever

    class LoopbackChat(BaseChatModel):
        """Chat completions, as the packages of model providers implement them."""

        client: Any

        @property
        def _llm_type(self) -> str:
            return "loopback"

        def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
            return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

        def _generate(self, messages: list[BaseMessage], *_: Any, **options: Any) -> ChatResult:
            options.pop("run_manager", None)
            reply = self.client.chat.completions.create(
                model="small", messages=convert_to_openai_messages(messages), tools=options["tools"]
            )
            said = reply.choices[0].message
            calls = [
                {"name": call.function.name, "args": json.loads(call.function.arguments), "id": call.id}
                for call in said.tool_calls or ()
            ]
            message = AIMessage(content=said.content or "", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=message)])

    tool = create_retriever_tool(
        SennitRetriever(db=notes, k=2),
        "search_notes",
        "Search the notes.",
        document_prompt=PromptTemplate.from_template("{source}: {page_content}"),
    )
    chat = LoopbackChat(client=OpenAI(base_url=model.base_url, api_key="none")).bind_tools([tool])
    messages: list[BaseMessage] = [HumanMessage(QUESTION)]
    while (reply := chat.invoke(messages)).tool_calls:
        messages += [reply, *(tool.invoke(call) for call in reply.tool_calls)]
    check(str(reply.content), model)


def test_an_agent_of_haystack(notes: sennit.Database, model: AgentModelServer) -> None:
    need("haystack", "haystack")
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import Tool
    from haystack.utils import Secret

    tools = sennit.Tools(notes, read_only=True)
    (search,) = (
        one["function"] for one in tools.describe("openai") if one["function"]["name"] == "hybrid_search"
    )
    agent = Agent(
        chat_generator=OpenAIChatGenerator(
            api_key=Secret.from_token("none"), model="small", api_base_url=model.base_url
        ),
        tools=[Tool(**search, function=lambda **arguments: tools.call("hybrid_search", arguments).text)],
        system_prompt=tools.instructions,
    )
    result = agent.run(messages=[ChatMessage.from_user(QUESTION)])
    check(result["messages"][-1].text, model)


def test_an_agent_of_llamaindex(notes: sennit.Database, model: AgentModelServer) -> None:
    need("llama_index", "llamaindex")
    need("openai", "haystack")
    from llama_index.core.agent.workflow import ReActAgent
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.schema import MetadataMode
    from llama_index.core.tools import FunctionTool
    from openai import OpenAI

    from sennit.integrations.llamaindex import SennitRetriever

    client = OpenAI(base_url=model.base_url, api_key="none")

    class LoopbackModel(CustomLLM):
        """Chat completions without tool calls, which a ReAct agent does not need."""

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="small")

        def chat(self, messages: Sequence[Any], **_: Any) -> Any:
            from llama_index.core.llms import ChatMessage, ChatResponse

            sent = [{"role": one.role.value, "content": one.content} for one in messages]
            said = client.chat.completions.create(model="small", messages=sent).choices[0].message.content
            return ChatResponse(message=ChatMessage(role="assistant", content=said))

        async def achat(self, messages: Sequence[Any], **options: Any) -> Any:
            return await asyncio.to_thread(self.chat, messages, **options)

        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
            raise NotImplementedError

        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            raise NotImplementedError

    retriever = SennitRetriever(notes, similarity_top_k=2)

    def notes_tool(input: str) -> str:  # noqa: A002 - what the agent calls it
        """Search the notes."""
        found = retriever.retrieve(input)
        return "\n\n".join(one.node.get_content(metadata_mode=MetadataMode.LLM) for one in found)

    async def run() -> str:
        tool = FunctionTool.from_defaults(notes_tool, name="notes")
        agent = ReActAgent(tools=[tool], llm=LoopbackModel(), streaming=False)
        return str(await agent.run(QUESTION))

    check(asyncio.run(run()), model)
