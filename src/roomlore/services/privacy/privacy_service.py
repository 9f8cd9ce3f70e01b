"""The verbs of `lore.privacy`: forgetting a person, and checking what is stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from roomlore.core.errors import InvalidInput, NameNotId, NotFound
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.integrity import Note, VerifyProgress, VerifyReport
from roomlore.core.memory.memory import check_scope, owner_of
from roomlore.core.privacy import ForgetReport
from roomlore.core.texts import Phrase
from roomlore.ports.audience import has_id
from roomlore.ports.durable import owner_prefix
from roomlore.ports.people import called, is_known
from roomlore.services.privacy.forgetter import Forgetter
from roomlore.services.privacy.forgettings import Forgettings
from roomlore.services.privacy.verify import Verifier
from roomlore.storage import Storage, UnitOfWork

_NAMED = 8
_ROOMS = 3
"""The most people of a name, and rooms of each, that an error names."""
_NOTHING_CHECKED = "Nothing is remembered in it, so no memory was checked."


class PrivacyService:
    """The verbs of `lore.privacy`, for one tenant."""

    def __init__(
        self, *, tenant: str, storage: Storage, forgetter: Forgetter, forgettings: Forgettings, verifier: Verifier
    ) -> None:
        self._tenant = tenant
        self._storage = storage
        self._forgetter = forgetter
        self._forgettings = forgettings
        self._verifier = verifier

    async def check_person(self, user_id: str) -> None:
        """Raise `NameNotId` if nobody has this id, and it is the name of people who spoke, in any room, or the scope
        of a person; the error names their ids.

        Whoever spoke, is or was a member of a room, or has memories is known by an id, even if it is also a name of
        others. An id of which nothing is known is no error.
        """
        given = _checked(user_id)
        async with self._storage.reading(self._tenant) as work:
            if await self._is_known(work, given):
                return
            person = owner_of(given)
            if person and await self._is_known(work, person):
                raise NameNotId("scope_for_person", scope=f"{given!r:.80}", person=f"{person!r:.80}")
            known = await called(work, given)
        if known:
            raise _name_not_id(given, known)

    async def person_named(self, name: str) -> str:
        """Return the id of the only person, in any room, who has the name. An id of which anything is known is never
        taken for a name, and what is nobody's name stays as it is. Raise `NameNotId` that names their ids if several
        have it."""
        given = _checked(name)
        async with self._storage.reading(self._tenant) as work:
            known = {} if await self._is_known(work, given) else await called(work, given)
        if len(known) > 1:
            raise _name_not_id(given, known)
        return next(iter(known), given)

    async def _is_known(self, work: UnitOfWork, user_id: str) -> bool:
        """Return True also for somebody who is being forgotten."""
        return await is_known(work, user_id) or await self._forgettings.work_of(work, user_id) is not None

    async def forget(
        self, user_id: str, *, dry_run: bool = False, same_words: bool = False, is_id: bool = False
    ) -> ForgetReport:
        """Remove what a person said and what follows from it: messages, features, vectors, sessions, facts, raw answers
        of models, finished work. Memories that rest on the person alone are retired, others lose their part.

        It cannot be undone: ask first. `dry_run` changes nothing and reports what would be removed. Messages of others
        are redacted only if they are linked to the person: quotes, replies, mentions. Messages that merely have the
        same words are counted (`report.same_words`) and stay; `same_words` redacts them too, in rooms that both spoke
        in, if they came later. If it breaks off, background work of any process continues it within about a minute; the
        same call continues at once, also if something is left (`report.left`).
        A name in place of an id is refused, as by `check_person`, unless you say that it `is_id`. `report.found`
        is False if nothing of the id was here. Raise `InvalidInput`, `StorageUnavailable`.
        """
        given = _checked(user_id)
        if not is_id:
            await self.check_person(given)
        if dry_run:
            return await self._forgetter.forget(tenant=self._tenant, user_id=given, dry_run=True, same_words=same_words)
        return await self._forgettings.forget(tenant=self._tenant, user_id=given, same_words=same_words)

    async def begin_forgetting(self, user_id: str, *, same_words: bool = False, is_id: bool = False) -> str:
        """Do what `forget` does as a job, and return its id at once. The request is stored first, and done even if this
        process ends: by its next start, or by another process. The job is listed until it is done, and names nobody.
        A request for somebody whose job is not done returns that job; if it failed, it is tried again now, not after
        its pause. Raise as `forget` does.
        """
        given = _checked(user_id)
        if not is_id:
            await self.check_person(given)
        return self._job_id(await self._forgettings.begin(tenant=self._tenant, user_id=given, same_words=same_words))

    async def forgetting_job(self, user_id: str) -> str | None:
        """Return the id of the job of a request to forget the person that is not done, None if there is none. A request
        that was stored a moment ago may not have its job yet."""
        async with self._storage.reading(self._tenant) as work:
            work_id = await self._forgettings.work_of(work, _checked(user_id))
        return None if work_id is None else self._job_id(work_id)

    def _job_id(self, work_id: str) -> str:
        return work_id.removeprefix(owner_prefix(self._tenant))

    async def forgotten(self, job_id: str, user_id: str, *, same_words: bool = False) -> ForgetReport:
        """Wait until the job that `begin_forgetting` returned for the person has ended, and return its report. If it
        ended before, or in another process, the report counts rooms and memories without listing their ids
        (`unlisted`). Raise `StorageUnavailable` if it failed: it is tried again later; `NotFound` if it is another
        person's, or nobody knows it any more and something of the person is stored.
        """
        return await self._forgettings.ended(
            owner_prefix(self._tenant) + job_id, tenant=self._tenant, user_id=_checked(user_id), same_words=same_words
        )

    async def is_being_forgotten(self, user_id: str) -> bool:
        """Return True if a request to forget the person is not done."""
        return await self.forgetting_job(user_id) is not None

    async def verify(
        self, scope: str | None = None, *, progress: Callable[[VerifyProgress], None] | None = None
    ) -> VerifyReport:
        """Read everything that is remembered of the tenant, or of one scope, and report inconsistencies: in the logs,
        the memories, what made them, what they rest on and the indexes; of a tenant, and in the room of a group's
        scope, also in what is derived from messages: features, words, counters; of a tenant also in the watermarks.
        Change nothing.

        It may run beside writers. `progress`: called after each scope and each page of messages. `report.sound` is
        False if there is a fault: then the command line exits with 1. If nothing is remembered in the scope, nothing is
        checked, and a note says so. Raise `NotFound` if nobody has its id either, `InvalidInput`, `StorageUnavailable`.
        """
        if scope is not None:
            check_scope(scope)
        report = await self._verifier.verify(tenant=self._tenant, scope=scope, progress=progress)
        if scope is not None and not report.checked and report.sound:
            await self._check_there(scope)
            return replace(report, notes=(Note(f"scope {scope}", _NOTHING_CHECKED), *report.notes))
        return report

    async def _check_there(self, scope: str) -> None:
        """Raise `NotFound` if neither a room nor a person has the id of a scope in which nothing is remembered."""
        async with self._storage.reading(self._tenant) as work:
            there = await has_id(work, scope=scope)
        if not there:
            raise NotFound("scope_unknown_to_check", scope=f"{scope!r:.80}")


def _name_not_id(name: str, known: Mapping[str, Sequence[str]]) -> NameNotId:
    """Return the error about a name in place of an id. `known`: the rooms of those who have it, by their ids."""
    more = Phrase("and_more", count=len(known) - _NAMED) if len(known) > _NAMED else ""
    where = {own_id: f" ({', '.join(rooms[:_ROOMS]):.80})" if len(known) > 1 else "" for own_id, rooms in known.items()}
    named = ", ".join(f"{own_id:.80}{where[own_id]}" for own_id in list(known)[:_NAMED])
    return NameNotId("person_named", name=f"{name!r:.80}", known=named, more=more)


def _checked(user_id: object) -> str:
    if not isinstance(user_id, str) or not user_id.strip():
        raise InvalidInput("person_invalid", value=f"{user_id!r:.60}")
    if len(user_id) > MAX_ID_CHARS:
        raise InvalidInput("sender_id_too_long", count=len(user_id), most=MAX_ID_CHARS)
    return user_id
