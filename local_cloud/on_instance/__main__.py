"""`python -m local_cloud.on_instance`: what a server of a deployment runs. It finds out what it is for, and is that."""

import asyncio
import logging
import os
import sys

from common.cloud_names import Phase, key_parameter
from common.errors import DorylusError
from common.wire.keys import new_key_pair
from local_cloud.on_instance.aws import Aws
from local_cloud.on_instance.beats import Beats
from local_cloud.on_instance.bucket import Bucket
from local_cloud.on_instance.cutter import Cutter
from local_cloud.on_instance.data import Data
from local_cloud.on_instance.job_keys import server_keys
from local_cloud.on_instance.job_record import JobRecords
from local_cloud.on_instance.lead import Leader
from local_cloud.on_instance.log_lines import CloudObserver, JsonLines, log_to_stdout
from local_cloud.on_instance.members import Members
from local_cloud.on_instance.metadata import Instance, this_instance
from local_cloud.on_instance.own_role import Keys, Post, role_names
from local_cloud.on_instance.serve import Server
from local_cloud.on_instance.settings import Settings
from local_cloud.on_instance.task import Task
from local_cloud.on_instance.team import LEADER, Team

LOG = logging.getLogger(__name__)


def main() -> int:
    """Exit code: 1 after an error."""
    settings = Settings.read(os.environ)
    lines = JsonLines()
    log_to_stdout(lines)
    try:
        instance = this_instance(settings.metadata_url)
        lines.said |= {"job_id": instance.job_id, "generation": instance.generation, "instance": instance.id}
        run(settings, instance, lines)
    except DorylusError as error:
        LOG.error("%s", error)
        return 1
    except Exception:
        LOG.exception("this server has failed")
        return 1
    return 0


def run(settings: Settings, instance: Instance, lines: JsonLines) -> None:
    aws = Aws.connect(settings.region)
    records = JobRecords(aws, settings.jobs_table, instance)
    record, task = records.own(), Task(aws, records)
    data = Data(aws, record, Bucket(aws, settings.bucket), settings.work)
    if instance.phase is Phase.CUT:
        lines.said["role"] = "cutter"
        Cutter(instance, records, task, data, settings).run()
        return
    names = role_names(record)
    members = Members(aws, settings.members_table, instance, names)
    shown, launcher = new_key_pair(), new_key_pair()
    name = members.claim(shown.public, launcher.public)
    lines.said["role"] = name
    LOG.info("this instance is %s", name)
    keys = Keys(server_keys(aws, key_parameter(settings.stack, instance.job_id)), shown, launcher)
    post, team = Post(settings, instance, record, name, keys), Team(members, name, names)
    if name == LEADER:
        Leader(post, team, task, records, data).run()
        return
    observer = CloudObserver(settings.stack)
    with Beats(lambda: members.beat(name)):
        server = Server(post, team, task, data.bucket)
        asyncio.run(server.run(lambda: data.prepare(observer, graph_server=post.graph_server)[1]))


if __name__ == "__main__":
    sys.exit(main())
