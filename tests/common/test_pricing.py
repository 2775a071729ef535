"""The bill against AWS's own rules, worked out by hand: sums per invocation, no averages, INIT, minimums, regions."""

from dataclasses import replace

import pytest

from common.errors import SpecError
from common.price_table import TABLES, US_EAST_1
from common.pricing import (
    LambdaUsage,
    Usage,
    added,
    architecture_of,
    billed_ms,
    instance_hour,
    on_demand,
    price,
    price_note,
    price_table,
    prices_of,
    spot_share,
)

NO_SERVERS: dict[str, list[float]] = {}


def lambda_usage(*invocations: tuple[int, int]) -> LambdaUsage:
    usage = LambdaUsage()
    for memory_mb, milliseconds in invocations:
        usage.invocation(memory_mb=memory_mb, billed_ms=milliseconds)
    return usage


@pytest.mark.parametrize(
    ("duration_ms", "init_ms", "billed"),
    [(12.0, 0.0, 12), (12.01, 0.0, 13), (0.2, 0.0, 1), (0.0, 0.0, 1), (99.5, 0.0, 100), (10.4, 180.3, 191)],
)
def test_an_invocation_is_billed_by_started_milliseconds_with_its_init(duration_ms, init_ms, billed):
    assert billed_ms(duration_ms, init_ms=init_ms) == billed


def test_gb_seconds_are_summed_over_invocations_and_never_averaged():
    usage = lambda_usage((1024, 1000), (2048, 10), (128, 60_000))
    assert usage.gb_seconds == 1.0 + 0.02 + 7.5
    assert usage.requests == 3
    averaged = 3 * (1024 + 2048 + 128) / 3 / 1024 * (61_010 / 3) / 1000
    assert averaged != pytest.approx(usage.gb_seconds)


def test_many_short_invocations_add_up_without_drift():
    usage = lambda_usage(*[(1769, 1)] * 100_000)
    assert usage.gb_seconds == 1769 * 100_000 / 1024 / 1000


def test_usages_merge():
    usage = lambda_usage((512, 10))
    usage.merge(lambda_usage((512, 30), (512, 60)))
    assert (usage.requests, usage.gb_seconds) == (3, 0.05)


def test_a_million_invocations_of_the_price_list():
    """1 M requests of 120 ms at 1536 MB on x86: 180,000 GB-s, 3.00 and 0.20 dollars."""
    usage = Usage(NO_SERVERS, lambda_gb_seconds=180_000.0, lambda_requests=1_000_000)
    cost = price(usage, instance_type="c7i.large", architecture="x86_64")
    assert [item.usd for item in cost.items] == [pytest.approx(3.0, rel=1e-5), pytest.approx(0.20)]
    assert cost.usd == pytest.approx(3.20, rel=1e-5)


def test_arm_functions_are_a_fifth_cheaper_and_go_with_arm_servers():
    usage = Usage(NO_SERVERS, lambda_gb_seconds=1e6)
    arm, x86 = price(usage, instance_type="c7g.2xlarge"), price(usage, instance_type="c7i.2xlarge")
    assert (arm.items[0].what, x86.items[0].what) == ("Lambda arm64", "Lambda x86_64")
    assert arm.usd / x86.usd == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize(
    ("instance_type", "architecture"),
    [("c7g.large", "arm64"), ("c6gn.xlarge", "arm64"), ("c7i.large", "x86_64"), ("c5.large", "x86_64")],
)
def test_the_architecture_of_an_instance_type(instance_type, architecture):
    assert architecture_of(instance_type) == architecture


@pytest.mark.parametrize(
    ("seconds", "billed"), [(1.0, 60), (59.9, 60), (60.0, 60), (60.2, 61), (3600.0, 3600), (0.0, 60)]
)
def test_a_server_is_billed_by_the_second_and_a_minute_at_the_least(seconds, billed):
    cost = price(Usage({"graph server": [seconds]}), instance_type="c7g.2xlarge")
    assert cost.usd == pytest.approx(0.29 * billed / 3600)


def test_the_minimum_holds_for_each_server():
    cost = price(Usage({"graph server": [10.0] * 4}), instance_type="c5n.2xlarge")
    assert cost.usd == pytest.approx(4 * 60 * 0.432 / 3600)


@pytest.mark.parametrize(
    ("instance_type", "hour"),
    [
        ("c5.2xlarge", 0.340),
        ("c5n.2xlarge", 0.432),
        ("c5n.4xlarge", 0.864),
        ("c6gn.2xlarge", 0.3456),
        ("c6in.2xlarge", 0.4536),
        ("c7g.large", 0.0725),
        ("c7g.16xlarge", 2.32),
        ("c7i.48xlarge", 8.568),
        ("c8g.2xlarge", 0.31904),
        ("c8gn.4xlarge", 0.948),
        ("m7g.12xlarge", 1.9584),
        ("r5.2xlarge", 0.504),
        ("r7g.4xlarge", 0.8568),
        ("r8g.2xlarge", 0.47128),
    ],
)
def test_hourly_prices(instance_type, hour):
    assert instance_hour(instance_type) == pytest.approx(hour, abs=1e-9)


def test_the_bill_of_a_run_is_itemised_and_adds_up():
    usage = Usage(
        {"graph server": [100.0, 100.4], "parameter server": [100.0]},
        lambda_gb_seconds=1000.0,
        lambda_requests=500,
        across_zones_bytes=3_000_000_000,
    )
    cost = price(usage, instance_type="c7g.2xlarge")
    assert [(item.what, item.unit) for item in cost.items] == [
        ("graph server: 2 x c7g.2xlarge", "hours"),
        ("parameter server: 1 x c7g.2xlarge", "hours"),
        ("Lambda arm64", "GB-s"),
        ("Lambda requests", "requests"),
        ("across zones", "GB"),
    ]
    by_hand = 0.29 * (100 + 101 + 100) / 3600 + 1000 * 0.0000133334 + 500 * 0.2e-6 + 3 * 0.02
    assert cost.usd == pytest.approx(by_hand)


def test_what_is_beside_the_servers_is_billed_too_and_disks_are_said_not_to_be_counted():
    """An hour of ten endpoints, a month of 1000 GB, and a million requests of each kind; by hand."""
    month = 730 * 3600.0
    usage = Usage(
        NO_SERVERS,
        s3_reads=1_000_000,
        s3_writes=1_000_000,
        stored_gb_seconds=1000 * month,
        endpoint_seconds=10 * 3600.0,
        disk_gb_seconds=100 * month,
    )
    cost = price(usage, instance_type="c7g.large")
    assert [(item.what, item.unit, item.usd) for item in cost.items] == [
        ("S3 reads", "requests", pytest.approx(0.40)),
        ("S3 writes", "requests", pytest.approx(5.00)),
        ("S3 storage", "GB-months", pytest.approx(23.0)),
        ("private endpoints", "hours", pytest.approx(0.10)),
        ("disks", "GB-months", None),
    ]
    assert cost.usd == on_demand(cost.items) == pytest.approx(28.5)
    twice = added(cost.items, cost.items)
    assert [(item.quantity, item.usd) for item in twice[-2:]] == [(20, pytest.approx(0.20)), (200, None)]


def test_a_region_with_a_table_of_its_own_is_told_in_it(monkeypatch):
    here = replace(US_EAST_1, region="here-1", lambda_request=1.0, disk_gb_month=0.5)
    monkeypatch.setattr("common.pricing.TABLES", {**TABLES, "here-1": here})
    assert prices_of("here-1") is here
    assert prices_of("nowhere-1") is prices_of(None) is US_EAST_1
    usage = Usage(NO_SERVERS, lambda_requests=2, disk_gb_seconds=730 * 3600.0)
    assert price(usage, instance_type="c7g.large", region="here-1").usd == 2.5
    assert price_note("here-1") == ""


def test_what_was_not_used_is_not_on_the_bill():
    cost = price(Usage({"graph server": [60.0], "parameter server": []}), instance_type="c7g.2xlarge")
    assert [item.what for item in cost.items] == ["graph server: 1 x c7g.2xlarge"]


@pytest.mark.parametrize(
    ("instance_type", "nearest"),
    [("c7g.3xlarge", "c7g."), ("c7q.2xlarge", "2xlarge"), ("r7g.2xlrage", "r7g.2xlarge"), ("nonsense", "did you mean")],
)
def test_an_unknown_instance_type_is_refused_with_the_nearest(instance_type, nearest):
    with pytest.raises(SpecError) as refused:
        price(Usage(NO_SERVERS), instance_type=instance_type)
    assert f"no price is known for instance type {instance_type!r} in us-east-1" in str(refused.value)
    assert nearest in refused.value.fix


def test_another_region_is_refused_rather_than_priced_wrongly():
    with pytest.raises(SpecError, match="no prices are known for region 'eu-west-1'"):
        price(Usage(NO_SERVERS), instance_type="c7g.large", region="eu-west-1")
    assert price_table("us-east-1") is US_EAST_1
    assert all(table.date for table in TABLES.values())


def test_a_spot_instance_costs_the_largest_share_that_was_seen_and_never_more_than_one_on_demand():
    usage = Usage({"graph server": [3600.0] * 2}, lambda_requests=1_000_000)
    spot, listed = price(usage, instance_type="c7g.2xlarge", spot=True), price(usage, instance_type="c7g.2xlarge")
    low, high = spot_share()
    assert 0 < low < high < 1
    assert high == pytest.approx(0.520 / 0.864)
    assert spot.items[0].what == "graph server: 2 x c7g.2xlarge spot"
    assert spot.items[0].usd == pytest.approx(high * listed.items[0].usd)
    assert spot.items[1:] == listed.items[1:]
    assert on_demand(spot.items) == pytest.approx(listed.usd)


def test_costs_of_another_region_say_whose_prices_they_are():
    assert price_note("us-east-1") == price_note(None) == ""
    assert price_note("eu-west-1").startswith(
        "costs and budgets are told in prices of us-east-1 (2025-10-28), for those of"
    )
