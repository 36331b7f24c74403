"""Each offer of a micro-batch is settled, whoever takes it and whenever a job leaves."""

from __future__ import annotations

import threading
from concurrent.futures import Future

from barnabas.engine.driver.mailbox import Mailbox, Offer
from barnabas.engine.driver.small_batches import NO_RECORDS


def offer(end: int) -> Offer:
    return Offer({"t": {"0": 0}}, {"t": {"0": end}}, NO_RECORDS, Future())


def test_a_newer_offer_settles_the_one_that_waits() -> None:
    box, first, second = Mailbox(), offer(1), offer(2)
    box.open()
    box.put(first)
    assert not first.taken.done()
    box.put(second)
    assert first.taken.done()
    assert box.wait() is second
    assert not second.taken.done(), "who takes it settles it"


def test_a_mailbox_that_is_shut_settles_what_waits_and_what_comes() -> None:
    box, first, second, third = Mailbox(), offer(1), offer(2), offer(3)
    box.open()
    box.put(first)
    box.shut()
    box.put(second)
    assert (first.taken.done(), second.taken.done()) == (True, True)
    box.open()
    box.put(third)
    assert box.wait() is third


def test_a_mailbox_that_is_closed_ends_the_wait_and_does_not_open_again() -> None:
    box, late = Mailbox(), offer(1)
    box.open()
    found: list[Offer | None] = []
    waiting = threading.Thread(target=lambda: found.append(box.wait()))
    waiting.start()
    box.close()
    waiting.join(10)
    assert found == [None]
    box.open()
    box.put(late)
    assert late.taken.done()
