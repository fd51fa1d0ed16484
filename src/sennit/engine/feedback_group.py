"""`db.feedback`: what people did with the results of searches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sennit.engine.access import Access
from sennit.engine.search_recorder import SearchNote, SearchRecorder
from sennit.engine.validation import check_instances
from sennit.errors import AccessDenied, InvalidInput, NotFound
from sennit.feedback import Feedback, FeedbackEvent, LoggedQuery, ShownHit
from sennit.filters import matches
from sennit.privacy import Caller
from sennit.records import full_id
from sennit.repositories.feedback import FeedbackOwner, FeedbackStore, NewFeedback, QueryFeedback
from sennit.results import Hit, SearchResult
from sennit.search_parameters import MAX_LOGGED_CHARACTERS, MAX_SHOWN
from sennit.stores.contract import RecordsRole


class FeedbackGroup:
    """`db.feedback`: what people did with the results of searches, each caller's apart."""

    def __init__(self, access: Access, records: RecordsRole, recorder: SearchRecorder) -> None:
        self._access = access
        self._records = records
        self._store = FeedbackStore(records)
        self._recorder = recorder

    def add(
        self,
        query: str | SearchResult,
        action_name: str,
        item: str | Hit = "",
        *,
        grade: int | None = None,
        session_id: str = "",
        client_id: str = "",
        application: str = "",
        message: str = "",
        caller: Caller | None = None,
    ) -> FeedbackEvent:
        """Record what was done with a result: `db.feedback.add(result, "click", result[0])`.

        `query` is a result, or the `query_id` of one; `item` is a hit or the id of a record, or empty for the whole
        answer. The actions are impression, click, cite, use, reject, and judge, which needs a grade from 0 to 3.
        """
        result = query if isinstance(query, SearchResult) else None
        feedback = Feedback(
            query if result is None else result.query_id,  # type: ignore[arg-type]
            action_name,
            item.id if isinstance(item, Hit) else item,
            grade=grade,
            session_id=session_id,
            client_id=client_id,
            application=application,
            message=message,
            query="" if result is None else result.query,
            recipe="" if result is None else result.recipe,
            shown=() if result is None else [hit.id for hit in result[:MAX_SHOWN]],
        )
        return self.add_many([feedback], caller=caller)[0]

    def add_many(
        self, feedback: Iterable[Feedback], *, caller: Caller | None = None
    ) -> tuple[FeedbackEvent, ...]:
        """Record several actions, all or none; return the events as they are stored.

        Raises NotFound for a search that the caller did not make, and for a record that the caller may not see.
        """
        given = check_instances(Feedback, feedback, "feedback.add_many()")
        if not self._recorder.is_on:
            raise InvalidInput("Feedback is switched off: the setting feedback.record is off")
        who = self._access.resolve(caller)
        owner = FeedbackOwner.of(who)
        queries: dict[str, LoggedQuery] = {}
        events: dict[str, list[FeedbackEvent]] = {}
        ordered = []
        for one in given:
            if one.query_id not in queries:
                queries[one.query_id] = self._find_query(one, who, owner)
            event = self._make_event(one, queries[one.query_id], who)
            events.setdefault(one.query_id, []).append(event)
            ordered.append(event)
        if ordered:
            self._store.add(NewFeedback(owner, queries[name], events[name]) for name in events)
            self._recorder.prune()
        return tuple(ordered)

    def last_query_id(self, object_id: str, *, caller: Caller | None = None) -> str:
        """Return the `query_id` of the caller's last search in this process that showed a record."""
        found = self._recorder.find_last(self._access.resolve(caller), object_id)
        if found is None:
            raise NotFound(f"No recent search of yours showed {object_id!r}; give the query_id of the search")
        return found

    def read(self, *, everything: bool = False, caller: Caller | None = None) -> tuple[QueryFeedback, ...]:
        """Return each recorded search with what was done, the oldest first.

        A caller sees its own. With `everything`, an owner sees that of all callers of the tenant; without a caller,
        that of all tenants.
        """
        self._recorder.flush()
        owner, tenant = self._selection(caller, everything=everything)
        after = self._recorder.expired_before
        return tuple(self._store.read(owner, tenant=tenant, recorded_after=after))

    def load(
        self,
        queries: Iterable[LoggedQuery],
        events: Iterable[FeedbackEvent] = (),
        *,
        caller: Caller | None = None,
    ) -> int:
        """Store feedback that was exported elsewhere, as the caller's own; return how many queries there were.

        Its ids need not exist here. Each event must belong to one of the queries.
        """
        if not self._recorder.is_on:
            raise InvalidInput("Feedback is switched off: the setting feedback.record is off")
        who = self._access.resolve(caller)
        logged = {query.query_id: replace(query, tenant=who.tenant) for query in queries}
        of: dict[str, list[FeedbackEvent]] = {name: [] for name in logged}
        for event in events:
            if event.query_id not in of:
                raise InvalidInput(
                    f"An event names the query {event.query_id!r}, which is not among the queries"
                )
            of[event.query_id].append(event)
        owner = FeedbackOwner.of(who)
        self._store.add(NewFeedback(owner, query, of[name]) for name, query in logged.items())
        return len(logged)

    def forget(
        self,
        query_ids: Iterable[str] | None = None,
        *,
        session_id: str | None = None,
        everything: bool = False,
        caller: Caller | None = None,
    ) -> int:
        """Remove recorded searches with what was done; return how many there were.

        All of the caller's, or those with these ids, or of this session. With `everything`, those of all callers, as
        `read` has them.
        """
        if query_ids is not None and session_id is not None:
            raise InvalidInput("forget() takes query_ids or a session_id, not both")
        names = None if query_ids is None else frozenset(query_ids)
        found = self.read(everything=everything, caller=caller)
        chosen = [
            (one.owner, one.query.query_id)
            for one in found
            if (names is None or one.query.query_id in names)
            and (session_id is None or one.query.session_id == session_id)
        ]
        who = self._access.resolve(caller)

        def is_meant(noted: SearchNote) -> bool:
            if everything:
                is_theirs = caller is None or noted.caller.tenant == caller.tenant
            else:
                is_theirs = noted.caller == who
            return (
                is_theirs
                and (names is None or noted.query_id in names)
                and (session_id is None or noted.session_id == session_id)
            )

        self._recorder.forget(is_meant)
        return self._store.remove(chosen)

    def _selection(
        self, caller: Caller | None, *, everything: bool
    ) -> tuple[FeedbackOwner | None, str | None]:
        """Return whose feedback is meant: an owner, a tenant, or neither for all."""
        if not everything:
            return FeedbackOwner.of(self._access.resolve(caller)), None
        if caller is None:
            return None, None
        if not caller.everything:
            raise AccessDenied("Only an owner, who sees everything of the tenant, may see all feedback")
        return None, caller.tenant

    def _find_query(self, feedback: Feedback, who: Caller, owner: FeedbackOwner) -> LoggedQuery:
        query_id = feedback.query_id
        found = self._recorder.find(who, query_id) or self._store.query(owner, query_id)
        if found is not None:
            return found
        if not feedback.query:
            raise NotFound(
                f"You made no search with the query_id {query_id!r} that is still known. Each process remembers its "
                'last searches; give the query and what was shown too, or set feedback.record to "all"'
            )
        self._check_visible(feedback.shown, who)
        return LoggedQuery(
            query_id=query_id,
            query=feedback.query[:MAX_LOGGED_CHARACTERS],
            recipe=feedback.recipe,
            shown=tuple(map(ShownHit, feedback.shown)),
            session_id=feedback.session_id,
            client_id=feedback.client_id,
            application=feedback.application,
            user_id=who.name,
            tenant=who.tenant,
            reported=True,
        )

    def _make_event(self, feedback: Feedback, query: LoggedQuery, who: Caller) -> FeedbackEvent:
        position = feedback.position or query.position_of(feedback.object_id)
        if feedback.object_id and query.position_of(feedback.object_id) is None:
            self._check_visible([feedback.object_id], who)
        return FeedbackEvent(
            query_id=feedback.query_id,
            action_name=feedback.action_name,
            object_id=feedback.object_id,
            position=position,
            grade=feedback.grade,
            session_id=feedback.session_id or query.session_id,
            client_id=feedback.client_id or query.client_id,
            application=feedback.application,
            user_id=who.name,
            message=feedback.message,
        )

    def _check_visible(self, ids: Sequence[str], who: Caller) -> None:
        """Refuse an id that is no record which the caller may see; the message is the same for both cases."""
        audience = self._access.policy.audience(who)
        found = self._records.get(full_id(who.tenant, name) for name in ids)
        visible = {record.id for record in found.values() if matches(audience, record)}
        missing = next((name for name in ids if name not in visible), None)
        if missing is not None:
            raise NotFound(f"The search did not show {missing!r}, and there is no such record")
