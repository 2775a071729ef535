"""Names that the cloud's parts must spell alike."""

from common.cloud_names import JobState, execution_name, key_parameter, member_key, run_key


def test_three_states_are_final():
    assert {state.value for state in JobState if state.is_final} == {"Completed", "Failed", "Stopped"}


def test_an_executions_name_has_at_most_80_characters_and_tells_jobs_apart():
    longest = "x" * 63 + "-20261201T100000-abcdef"
    assert len(execution_name(longest)) == 80
    assert execution_name(longest).endswith("-20261201T100000-abcdef")
    assert execution_name("short") == "short"


def test_generations_sort_apart():
    assert member_key(2, "graph0") < member_key(10, "graph0")


def test_paths_bear_the_job():
    assert run_key("job-1", "status.json") == "runs/job-1/status.json"
    assert key_parameter("dorylus", "job-1") == "/dorylus/jobs/job-1/keys"
