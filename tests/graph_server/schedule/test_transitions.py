"""The transition table of an interval: every legal move; every other one raises with the interval's story."""

import pytest

from common.errors import ScheduleError
from common.passes import train
from graph_server.schedule.scheduler import STORY_LENGTH, TRANSITIONS, Move, Progress, State

LEGAL = {
    (State.RESTING, Move.PASS_OPENED): State.AT_GATE,
    (State.AT_GATE, Move.GATE_OPENED): State.READY,
    (State.READY, Move.STARTED): State.RUNNING,
    (State.RUNNING, Move.STAGE_DONE): State.AT_GATE,
    (State.RUNNING, Move.TASK_LOST): State.READY,
    (State.AT_GATE, Move.PASS_DONE): State.RESTING,
}


def test_the_table_is_this_one():
    assert TRANSITIONS == LEGAL


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("move", Move)
def test_every_move_is_in_the_table_or_raises_with_the_story(state: State, move: Move):
    progress = Progress(5, position=3)
    progress.move(Move.PASS_OPENED, train(2))
    progress.state = state
    if (state, move) in LEGAL:
        progress.move(move)
        assert progress.state is LEGAL[state, move]
        return
    with pytest.raises(ScheduleError) as error:
        progress.move(move, "now")
    assert error.value.what == f"interval 5, {state.name}, step 3: {move.name} is illegal"
    assert error.value.why == f"its story: PASS_OPENED at step 3 train 2 · {move.name} at step 3 now"
    assert progress.state is state


def test_a_story_is_kept_short():
    progress = Progress(0)
    for _ in range(100):
        for move in (Move.PASS_OPENED, Move.GATE_OPENED, Move.STARTED, Move.STAGE_DONE, Move.PASS_DONE):
            progress.move(move)
    assert len(progress.story.split(" · ")) == STORY_LENGTH
