"""What is billed: sums over invocations, started milliseconds, INIT on cold starts, failures too, throttles never."""

import math

import pytest

from local_cloud.lambda_service.fault_dice import FaultDice
from local_cloud.lambda_service.meter import InvocationRecord, Meter, report_line
from local_cloud.lambda_service.settings import Faults
from tests.local_cloud.lambda_service.running import Running


def record(function: str, *, billed_ms: int, cold: bool = False, error: str | None = None) -> InvocationRecord:
    return InvocationRecord(
        function=function,
        request_id="r",
        cold_start=cold,
        init_ms=120.5 if cold else 0.0,
        duration_ms=1.25,
        billed_ms=billed_ms,
        memory_mb=1024,
        max_memory_mb=60,
        error_type=error,
    )


def test_totals_are_of_all_functions_and_of_each():
    meter = Meter(100)
    meter.invocation(record("a", billed_ms=500, cold=True))
    meter.invocation(record("a", billed_ms=250, error="ValueError"))
    meter.invocation(record("b", billed_ms=250))
    meter.throttle("b")
    bill = meter.bill()
    assert (bill.requests, bill.gb_seconds, bill.cold_starts, bill.errors, bill.throttles) == (3, 1.0, 1, 1, 1)
    assert bill.functions["a"].gb_seconds == 0.75
    assert (bill.functions["b"].requests, bill.functions["b"].throttles) == (1, 1)


def test_records_are_bounded_and_totals_are_not():
    meter = Meter(3)
    for number in range(10):
        meter.invocation(record("a", billed_ms=number + 1))
    assert [one.billed_ms for one in meter.bill().records] == [8, 9, 10]
    assert meter.bill().requests == 10
    assert meter.bill(with_records=False).records == ()


def test_the_report_line_of_a_cold_start():
    assert report_line(record("a", billed_ms=122, cold=True)) == (
        "REPORT RequestId: r\tDuration: 1.25 ms\tBilled Duration: 122 ms\tMemory Size: 1024 MB\tMax Memory Used: 60 MB"
        "\tInit Duration: 120.50 ms\n"
    )


def test_a_running_service_bills_each_invocation(service: Running):
    before = service.meter()
    service.invoke("echo")
    service.invoke("fail", {"what": "this"})
    service.invoke("wait", {"seconds": 60})
    after = service.meter()
    new = after["records"][-3:]
    assert [one["error_type"] for one in new] == [None, "ValueError", "Sandbox.Timedout"]
    for one in new:
        assert one["billed_ms"] == max(1, math.ceil(one["init_ms"] + one["duration_ms"]))
        assert one["cold_start"] == (one["init_ms"] > 0)
    assert new[2]["billed_ms"] >= 300
    added = sum(one["memory_mb"] * one["billed_ms"] for one in new) / 1024 / 1000
    assert after["gb_seconds"] - before["gb_seconds"] == pytest.approx(added)
    assert after["requests"] - before["requests"] == 3
    assert after["errors"] - before["errors"] == 2
    assert service.get("/_meter?records=0")["records"] == []


def test_one_kind_of_bad_luck_does_not_move_another():
    crashes = FaultDice(Faults(crash_probability=0.3, seed=1))
    both = FaultDice(Faults(crash_probability=0.3, throttle_probability=0.5, seed=1))
    throttled = [both.throttles() for _ in range(50)]
    assert [crashes.crash_after() for _ in range(50)] == [both.crash_after() for _ in range(50)]
    assert 0 < sum(throttled) < 50


def test_other_seeds_are_other_luck():
    dice = [FaultDice(Faults(throttle_probability=0.5, seed=seed)) for seed in range(5)]
    assert len({tuple(die.throttles() for _ in range(20)) for die in dice}) == 5
