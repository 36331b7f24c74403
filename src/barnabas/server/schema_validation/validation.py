"""The schema validation of one broker: which logs are checked, and the questions to the registry.

Blocking clients in separate threads ask the registry. So a slow registry delays only the produce requests that need its answer. Equal
questions share one request.

Rules
  1. A registry that does not answer is not asked again for `limits.SCHEMA_REGISTRY_PAUSE_S` seconds; during that time every question fails
     at once.
  2. The first question creates the threads and clients, so a broker without such topics loads and starts nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import Executor
from functools import partial
from threading import local
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from barnabas import limits
from barnabas.errors import BarnabasError
from barnabas.server.schema_validation.checked_appender import CheckedAppender
from barnabas.server.schema_validation.subject import Question, Subject, SubjectRule, Verdict, rule_of
from barnabas.server.schema_validation.topic_check import TopicCheck
from barnabas.storage.log.appender import LogAppender

if TYPE_CHECKING:
    from barnabas.schemas.registry_client import RegistryClient
    from barnabas.server.services import Services
    from barnabas.storage.log import Log

logger = logging.getLogger(__name__)
THREADS = 4
NOT_ASKED = "too many questions wait"
PREFIX = "confluent."
TLS_KEYS = (
    "confluent.ssl.key.password",
    "confluent.ssl.keystore.location",
    "confluent.ssl.keystore.password",
    "confluent.ssl.keystore.type",
    "confluent.ssl.truststore.location",
    "confluent.ssl.truststore.password",
    "confluent.ssl.truststore.type",
)


class SchemaValidation:
    """Owns the subjects of this broker, and asks the registry about them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._subjects: WeakValueDictionary[SubjectRule, Subject] = WeakValueDictionary()
        self._asking: dict[Question, asyncio.Future[Verdict]] = {}
        self._threads: Executor | None = None
        self._of_thread = local()
        self._clients: list[RegistryClient] = []  # one for each thread
        self._paused_until_s = float("-inf")
        self._reason = NOT_ASKED
        self._is_down = False  # the registry did not answer the last question

    def fit(self, log: Log) -> None:
        """Give a log the appender with or without the check, as its settings demand."""
        config = log.config
        if not config.validates_schemas:
            if type(log.appender) is CheckedAppender:
                log.appender = LogAppender(log)
            return
        keys = values = None
        if config.confluent_key_schema_validation:
            keys = self._subject(rule_of(log.topic, config.confluent_key_subject_name_strategy, is_key=True))
        if config.confluent_value_schema_validation:
            values = self._subject(rule_of(log.topic, config.confluent_value_subject_name_strategy, is_key=False))
        log.appender = CheckedAppender(log, TopicCheck(keys, values, self._services.loop.time, lambda: self._reason))

    def _subject(self, rule: SubjectRule) -> Subject:
        found = self._subjects.get(rule)
        if found is None:
            found = self._subjects[rule] = Subject(rule, self._ask_in_background)
        return found

    async def ask(self, questions: Iterable[Question], timeout_s: float) -> None:
        """Wait until the registry has answered, cannot be asked, or the timeout is over. The subjects then have the answers."""
        asked = {self._begin(question) for question in questions} - {None}
        if asked:
            _, late = await asyncio.wait([each for each in asked if each is not None], timeout=timeout_s)
            if late:
                self._reason = f"no answer within {timeout_s:g} s"

    async def close(self) -> None:
        """Stop asking the registry."""
        if self._threads is None:
            return
        self._paused_until_s, self._is_down = float("inf"), True  # from now on, log no change of the registry's state
        self._threads.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            client.abort()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        for client in self._clients:
            client.close()

    def _ask_in_background(self, questions: Iterable[Question]) -> None:
        for question in questions:
            self._begin(question)

    def _begin(self, question: Question) -> asyncio.Future[Verdict] | None:
        """A future for the answer; None if the registry cannot be asked now."""
        found = self._asking.get(question)
        if found is not None:
            return found
        services = self._services
        if not services.config.confluent_schema_registry_url:
            self._reason = "confluent.schema.registry.url is not set"
            return None
        if services.loop.time() < self._paused_until_s:
            return None
        if len(self._asking) >= limits.MAX_SCHEMA_QUESTIONS:
            self._reason = NOT_ASKED
            return None
        if self._threads is None:
            self._threads = services.make_executor(THREADS, "barnabas-schemas")
        asked = services.loop.run_in_executor(self._threads, self._answer, question)
        self._asking[question] = asked
        asked.add_done_callback(partial(self._answered, question))
        return asked

    def _answer(self, question: Question) -> Verdict:
        """Ask the registry; runs in a thread."""
        from barnabas.server.schema_validation.registry_answers import verdict_of

        if self._services.loop.time() < self._paused_until_s:
            raise _Paused(self._reason)
        client: RegistryClient | None = getattr(self._of_thread, "client", None)
        if client is None:
            client = self._of_thread.client = self._make_client()
            self._clients.append(client)
        return verdict_of(client, question)

    def _make_client(self) -> RegistryClient:
        from barnabas.schemas.registry_client import RegistryClient
        from barnabas.tls.contexts import client_context
        from barnabas.tls.settings import client_settings

        config = self._services.config
        settings = {}
        if config.confluent_basic_auth_credentials_source == "USER_INFO":
            settings["basic.auth.user.info"] = config.confluent_basic_auth_user_info or ""
        urls = config.confluent_schema_registry_url
        tls = None
        if any(url.startswith("https:") for url in urls):
            given = {name.removeprefix(PREFIX): config.texts[name] for name in TLS_KEYS if name in config.texts}
            tls = client_context(client_settings(given))
        return RegistryClient(",".join(urls), settings, timeout_s=limits.SCHEMA_REGISTRY_TIMEOUT_S, tls=tls)

    def _answered(self, question: Question, asked: asyncio.Future[Verdict]) -> None:
        del self._asking[question]
        if asked.cancelled():
            return
        now_s = self._services.loop.time()
        error = asked.exception()
        if error is None:
            if self._is_down:
                self._is_down = False
                logger.info("event=schema-registry-answers-again")
            subject = self._subjects.get(question.rule)
            if subject is not None:
                subject.take(question.schema_id, asked.result(), now_s)
            return
        if isinstance(error, _Paused):
            return
        if not isinstance(error, BarnabasError):
            logger.error("event=schema-registry-failed", exc_info=error)
            self._reason = "the question met a fault of the broker"
        else:
            self._reason = str(error)
            if not self._is_down:
                logger.warning("event=schema-registry-does-not-answer error=%r", self._reason)
        self._is_down = True
        self._paused_until_s = now_s + limits.SCHEMA_REGISTRY_PAUSE_S


class _Paused(BarnabasError):
    """The registry has just failed to answer."""
