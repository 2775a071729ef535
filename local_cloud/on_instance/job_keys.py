"""The key pair of a job's listeners: made by the first server that looks for it, kept as an SSM SecureString.

It is written nowhere else. The sweeper deletes it.
"""

import msgspec
from botocore.exceptions import ClientError

from common.wire.keys import KeyPair, new_key_pair
from local_cloud.on_instance.aws import Aws, code_of


def server_keys(aws: Aws, parameter: str) -> KeyPair:
    """`parameter`: its name. Whoever asks gets the same pair."""
    if (found := _read(aws, parameter)) is not None:
        return found
    made = new_key_pair()
    value = msgspec.json.encode(made).decode()
    try:
        aws.ssm.put_parameter(Name=parameter, Value=value, Type="SecureString", Overwrite=False)
    except ClientError as error:
        if code_of(error) != "ParameterAlreadyExists":
            raise
        found = _read(aws, parameter)
        assert found is not None, "it was there a moment ago"
        return found
    return made


def _read(aws: Aws, parameter: str) -> KeyPair | None:
    try:
        value = aws.ssm.get_parameter(Name=parameter, WithDecryption=True)["Parameter"]["Value"]
    except ClientError as error:
        if code_of(error) == "ParameterNotFound":
            return None
        raise
    return msgspec.json.decode(value, type=KeyPair)
