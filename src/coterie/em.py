"""The EM loop that all iterative estimators share: E-step, M-step, stopping rule.

Hard and soft k-means, Gaussian mixtures and mixtures of VAEs differ only in the two functions that they pass to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Expectation = TypeVar("Expectation")


@dataclass(frozen=True)
class Iteration:
    """A finished iteration, for progress bars, callbacks and checkpoints."""

    number: int  # starting at 1
    max_iter: int
    state: Any  # after the M-step
    expectation: Any  # of the E-step before it
    converged: bool = False  # whether the loop stops here by its own rule


@dataclass(frozen=True)
class Outcome(Generic[State, Expectation]):
    """The result of the loop."""

    state: State
    expectation: Expectation | None  # of the last E-step; None if max_iter was 0
    n_iter: int
    converged: bool


def run(
    state: State,
    e_step: Callable[[State], Expectation],
    m_step: Callable[[State, Expectation], State],
    *,
    max_iter: int,
    stop: Callable[[State, State, Expectation], bool] = lambda old, new, expectation: False,
    on_iteration: Callable[[Iteration], Any] | None = None,
    first: int = 1,
) -> Outcome[State, Expectation]:
    """Alternate the two steps until ``stop(old_state, new_state, expectation)`` is true, or ``max_iter`` is reached.

    ``on_iteration`` is called after every iteration and ends the loop early if it returns a true value. To continue an
    interrupted run, pass the saved state and the number of the next iteration as ``first``.
    """
    expectation: Expectation | None = None
    for number in range(first, max_iter + 1):
        expectation = e_step(state)
        new_state = m_step(state, expectation)
        converged = stop(state, new_state, expectation)
        state = new_state
        halted = on_iteration is not None and on_iteration(Iteration(number, max_iter, state, expectation, converged))
        if converged or halted:
            return Outcome(state, expectation, number, converged)
    return Outcome(state, expectation, max(max_iter, first - 1), False)
