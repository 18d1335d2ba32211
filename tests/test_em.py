"""The one EM loop."""

from coterie import em


def halve(state):
    return state / 2


def run(state=64.0, **kind):
    return em.run(state, lambda s: ("seen", s), lambda s, e: halve(s), **kind)


def test_it_stops_when_told_and_says_where():
    ran = run(max_iter=50, stop=lambda old, new, expectation: new <= 1)
    assert (ran.state, ran.n_iter, ran.converged) == (1.0, 6, True)
    assert ran.expectation == ("seen", 2.0)


def test_it_ends_at_max_iter_without_having_converged():
    ran = run(max_iter=3)
    assert (ran.state, ran.n_iter, ran.converged) == (8.0, 3, False)


def test_no_iterations_are_fine():
    ran = run(max_iter=0)
    assert (ran.state, ran.n_iter, ran.expectation) == (64.0, 0, None)


def test_a_watcher_sees_all_and_can_stop_it():
    seen = []
    ran = run(max_iter=9, on_iteration=lambda it: seen.append((it.number, it.state)) or it.number == 4)
    assert seen == [(1, 32.0), (2, 16.0), (3, 8.0), (4, 4.0)]
    assert (ran.n_iter, ran.converged) == (4, False)


def test_a_resumed_run_goes_on_as_if_it_had_not_been_stopped():
    whole = run(max_iter=7)
    first = run(max_iter=3)
    second = run(first.state, max_iter=7, first=first.n_iter + 1)
    assert (second.state, second.n_iter) == (whole.state, whole.n_iter)
