"""Widths in letters, and what the explanation says about the rules that moved something."""

import pytest

from cli.spec_flags import flag_layer
from common.errors import SpecError
from local_cloud.explain import C, Explanation, F, H, explain_letters, in_letters


def explained(model: str, **settings: object) -> Explanation:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return explain_letters(flag_layer({"model.name": model, **given}))


@pytest.mark.parametrize(
    ("width", "letters"),
    [
        (F, "F"),
        (8 * H + 16, "8H+16"),
        (2 * F + 3 * H + 4 * C + 5, "2F+3H+4C+5"),
        (C + 2, "C+2"),
        (1000 * H, "1000H"),
        (1, "1"),
        (0, "0"),
    ],
)
def test_a_width_in_letters(width: int, letters: str):
    assert in_letters(width) == letters


def test_widths_of_attention_heads():
    widths = {t.name: t.width for step in explained("gat", model__num_heads="4").steps for t in step.reads}
    assert widths["projected0"] == "4H+8"
    assert widths["backward0"] == "4H+12"
    assert widths["projected1"] == "C+2"


def test_what_the_letters_decided_is_said():
    notes = explained("gcn", model__num_layers="3", model__dropout="0", training__hoist=False).notes
    assert notes == (
        "widths are per row: F features, H hidden, C classes, and F > H > C is assumed",
        "layer 0 multiplies before it gathers, because F > H; --no-commute undoes that",
        "layer 2 multiplies before it gathers, because H > C; --no-commute undoes that",
    )
    assert len(explained("gcn", training__commute=False).notes) == 1


def test_a_hidden_size_is_said_beside_its_letter():
    assert "H = 32; for numbers, name a dataset with --dataset" in explained("gcn", model__hidden_size="32").notes


def test_a_list_of_hidden_sizes_needs_a_dataset():
    with pytest.raises(SpecError) as refused:
        explained("gcn", model__hidden_size="64,32")
    assert str(refused.value) == (
        "model.hidden_size = [64, 32] without a dataset\n"
        "  why: without one every hidden layer is H wide\n"
        "  fix: add --dataset, or set --num-layers in its place"
    )
