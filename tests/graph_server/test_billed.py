"""What functions are billed: by Lambda's own line where there is one, else as long as somebody waited."""

import base64

from graph_server.billed import Billed

AWS = (
    "START RequestId: 1\nREPORT RequestId: 1\tDuration: 812.20 ms\tBilled Duration: 813 ms\tMemory Size: 512 MB\t"
    "Max Memory Used: 80 MB\tInit Duration: 400.00 ms\t\n"
)


def told(text: str, seconds: float = 2.0) -> tuple[int, int]:
    billed = Billed(1000)
    billed.told(base64.b64encode(text.encode()).decode(), seconds)
    return billed.requests, billed.mb_ms


def test_the_line_that_lambda_ends_with():
    assert told(AWS) == (1, 813 * 512)


def test_a_function_that_writes_such_a_line_itself_is_not_believed():
    assert told("Billed Duration: 1 ms\tMemory Size: 1 MB\n" + AWS) == (1, 813 * 512)


def test_without_it():
    assert told("", 1.2345) == (1, 1235 * 1000)
    assert told("only words\n", 1.0) == (1, 1000 * 1000)
    billed = Billed(1000)
    billed.told("%%%", 1.0)
    billed.unknown(0.5)
    assert billed.counts == {"function_requests": 2, "function_mb_ms": 1_500_000, "functions_open": 0}
