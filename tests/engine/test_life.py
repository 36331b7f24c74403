"""The life of a supervised process, by events."""

from __future__ import annotations

from barnabas.engine.life import Action, Life, Phase


def test_a_wanted_process_starts_and_an_unwanted_one_ends() -> None:
    life = Life(stop_s=5)
    assert life.tick(0, wanted=False) is None
    assert life.tick(1, wanted=True) is Action.START
    assert (life.phase, life.is_there, life.tick(2, wanted=True)) == (Phase.STARTING, True, None)
    life.ready()
    assert life.phase is Phase.RUNNING
    assert life.tick(3, wanted=False) is Action.TERMINATE
    assert life.tick(7.9, wanted=True) is None
    assert life.tick(8, wanted=False) is Action.KILL
    assert life.tick(9, wanted=False) is None
    life.ended(10, "killed")
    assert (life.phase, life.reason, life.tries) == (Phase.OFF, None, 0)
    assert life.tick(10, wanted=True) is Action.START


def test_the_pause_doubles_up_to_its_limit() -> None:
    life, now, pauses = Life(), 0.0, []
    for _ in range(8):
        assert life.tick(now, wanted=True) is Action.START
        life.ready()
        life.ended(now, "no")
        pauses.append(life.next_try_s - now)
        assert life.tick(life.next_try_s - 0.01, wanted=True) is None
        now = life.next_try_s
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert (life.tries, life.reason) == (8, "no")


def test_a_long_run_ends_a_row_of_failures() -> None:
    life = Life()
    for began, ended in ((0, 1), (2, 3), (5, 65)):
        assert life.tick(began, wanted=True) is Action.START
        life.ready()
        life.ended(ended, "no")
    assert (life.tries, life.next_try_s) == (1, 66)


def test_a_start_that_hangs_for_long_is_a_failure_in_the_row() -> None:
    life = Life()
    for began, ended in ((0, 1), (2, 70)):
        life.tick(began, wanted=True)
        life.ended(ended, "no")
    assert life.tries == 2


def test_a_process_that_waits_is_forgotten_when_nobody_wants_it() -> None:
    life = Life()
    life.tick(0, wanted=True)
    life.ended(0, "no")
    assert life.tick(0.5, wanted=False) is None
    assert (life.phase, life.tries) == (Phase.OFF, 0)
    assert life.tick(0.6, wanted=True) is Action.START


def test_a_process_that_did_its_work_does_not_wait() -> None:
    life = Life()
    life.tick(0, wanted=True)
    life.ended(1, None)
    assert life.phase is Phase.OFF
