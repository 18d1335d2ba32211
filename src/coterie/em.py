"""The one EM loop: state -> e_step -> m_step -> stop.

Soft k-means, hard k-means in every engine, mixtures and mixtures of VAEs differ in the two functions they hand in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

State = TypeVar("State")
Expectation = TypeVar("Expectation")


@dataclass(frozen=True)
class Iteration:
    """What a progress bar, a callback or a checkpoint needs to know of one finished iteration."""

    number: int  # 1 for the first
    max_iter: int
    state: Any  # after the M-step
    expectation: Any  # of the E-step that led to it
    converged: bool = False  # whether the loop stops here by its own rule


@dataclass(frozen=True)
class Outcome(Generic[State, Expectation]):
    """Where the loop ended."""

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
    """Alternate the two steps until ``stop(old_state, new_state, expectation)`` or ``max_iter``.

    ``on_iteration`` sees every finished iteration; a true answer ends the loop early, as a stop button does.
    A run that was interrupted goes on with the saved state and ``first`` = the number of the next iteration.
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
