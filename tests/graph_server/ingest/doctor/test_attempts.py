"""Steps that refuse, and what gets past them."""

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.doctor.attempts import Remedy, attempt
from graph_server.ingest.doctor.diagnosis import Level

OPTIONS = DatasetSpec(path="small")
WAYS = (Remedy("nan", "zero"), Remedy("nan", "mean"), Remedy("normalize_features", "none"), Remedy("directed", True))


def two_faults(options: DatasetSpec) -> str:
    if options.nan == "error":
        raise DatasetError("NaN", "why", "fill them")
    if options.normalize_features == "auto":
        raise DatasetError("sums are 0", "why", "another way")
    return f"{options.nan} {options.normalize_features}"


def test_a_step_that_passes():
    done = attempt("step", lambda options: options.path, OPTIONS, WAYS)
    assert done == ("small", (), OPTIONS)


def test_every_fault_is_found_with_all_that_gets_past_it():
    done = attempt("step", two_faults, OPTIONS, WAYS)
    assert done.value == "zero none"
    assert [(one.what, one.options) for one in done.findings] == [
        ("NaN", ("dataset.nan: zero", "dataset.nan: mean")),
        ("sums are 0", ("dataset.normalize_features: none",)),
    ]
    assert (done.options.nan, done.options.normalize_features) == ("zero", "none")
    assert all(one.level is Level.REFUSED and one.code == "step" and one.why == "why" for one in done.findings)


def test_what_nothing_helps_keeps_the_options_that_its_error_names():
    def hopeless(_: DatasetSpec) -> str:
        raise DatasetError("objects", "why", "set dataset.allow_pickle: true")

    done = attempt("read", hopeless, OPTIONS, WAYS)
    assert (done.value, done.options) == (None, OPTIONS)
    assert [one.options for one in done.findings] == [("dataset.allow_pickle: true",)]


def test_a_remedy_that_is_set_already_is_none():
    def wants_more(options: DatasetSpec) -> str:
        raise DatasetError(f"nan = {options.nan}", "why", "something else")

    done = attempt("step", wants_more, OPTIONS.model_copy(update={"nan": "zero"}), WAYS[:1])
    assert [one.options for one in done.findings] == [()]


def test_remedies_are_spelled_as_in_a_job_spec():
    assert [str(way) for way in WAYS[2:]] == ["dataset.normalize_features: none", "dataset.directed: true"]
