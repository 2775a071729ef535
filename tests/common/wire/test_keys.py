"""Keys show themselves to nobody, and travel in structs."""

import io
import traceback

import msgspec
import pytest
from rich.console import Console
from rich.pretty import pretty_repr

from common.wire.keys import Address, KeyPair, Token, new_key_pair, new_token, token_proof


@pytest.mark.parametrize("make", [new_key_pair, new_token])
def test_no_secret_is_shown(make):
    credentials = make()
    console = Console(file=io.StringIO())
    console.print({"credentials": credentials})
    shown = [repr(credentials), str(credentials), f"{[credentials]}", pretty_repr(credentials), console.file.getvalue()]
    assert not [text for text in shown if credentials.secret in text]
    assert repr(credentials) == f"{type(credentials).__name__}(hidden)"


def test_an_error_about_a_key_does_not_show_it():
    pair = new_key_pair()
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"public": pair.public, "secret": [pair.secret]}, KeyPair)
    assert pair.secret not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(("make", "kind"), [(new_key_pair, KeyPair), (new_token, Token)])
def test_credentials_travel(make, kind):
    credentials = make()
    assert msgspec.json.decode(msgspec.json.encode(credentials), type=kind) == credentials
    assert make() != credentials


def test_a_proof_is_no_secret():
    pair, token = new_key_pair(), new_token()
    assert pair.proof == pair.public
    assert token.secret not in token.proof
    assert token.proof == token_proof(bytes.fromhex(token.secret))


def test_halves_have_forty_characters():
    pair = new_key_pair()
    assert (len(pair.public), len(pair.secret)) == (40, 40)


def test_an_address_shows_where_and_whom_to_trust():
    assert "tcp://127.0.0.1:5" in repr(Address("tcp://127.0.0.1:5", new_key_pair().public))
