"""Phase cut: the dataset is read and cut by the same code as on one machine, and its graph folder uploaded."""

import logging
import time

from local_cloud.on_instance.beats import Beats
from local_cloud.on_instance.data import Data
from local_cloud.on_instance.job_record import JobRecords, Superseded
from local_cloud.on_instance.log_lines import CloudObserver
from local_cloud.on_instance.metadata import Instance
from local_cloud.on_instance.task import Task

LOG = logging.getLogger(__name__)


class Cutter:
    def __init__(self, instance: Instance, records: JobRecords, task: Task, data: Data, stack: str) -> None:
        self._instance, self._records, self._task, self._data = instance, records, task, data
        self._observer = CloudObserver(stack)

    def run(self) -> None:
        """Raises the error that the state machine has heard of."""
        with Beats(self._beat):
            try:
                self._data.cut(self._observer)
            except Exception as error:
                self._task.failed(type(error).__name__, str(error))
                raise
            self._records.write({"cut_seconds": int(time.time() - self._instance.launched) + 1})
            self._task.done({})

    def _beat(self) -> None:
        record = self._records.beat()
        self._task.beat(record)
        if record.is_to_stop:
            self._task.failed("StopRequested", "the job was stopped while its graph was cut")
            raise Superseded("the job was stopped while its graph was cut")
