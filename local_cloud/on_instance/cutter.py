"""Phase cut: the dataset is read and cut by the same code as on one machine, and its graph folder uploaded.

It ends when it is to stop, and when it alone has used the job's budget up.
"""

import logging
import time

from local_cloud.on_instance.beats import Beats
from local_cloud.on_instance.data import Data
from local_cloud.on_instance.expenses import cut_usd
from local_cloud.on_instance.job_record import JobRecords, Superseded
from local_cloud.on_instance.log_lines import CloudObserver
from local_cloud.on_instance.metadata import Instance
from local_cloud.on_instance.settings import Settings
from local_cloud.on_instance.task import Task

LOG = logging.getLogger(__name__)


class Cutter:
    def __init__(self, instance: Instance, records: JobRecords, task: Task, data: Data, settings: Settings) -> None:
        self._instance, self._records, self._task, self._data = instance, records, task, data
        self._settings, self._observer = settings, CloudObserver(settings.stack)

    def run(self) -> None:
        """Raises the error that the state machine has heard of."""
        with Beats(self._beat):
            try:
                self._data.cut(self._observer)
            except Exception as error:
                self._task.failed(type(error).__name__, str(error))
                raise
            of_cut = {f"cut_{name}": count for name, count in self._data.bucket.requests.items()}
            self._records.write({"cut_seconds": self._seconds(), **of_cut})
            self._task.done({})

    def _beat(self) -> None:
        record = self._records.beat()
        self._task.beat(record)
        if record.is_to_stop:
            self._end("the job was stopped while its graph was cut")
        usd = cut_usd(self._settings, record, self._seconds(), self._data.bucket.requests)
        if usd > (cap := float(record.text("max_cost_usd"))):
            self._end(f"budget.max_cost_usd = {cap:g}: cutting the graph has cost {usd:.4f} USD already")

    def _end(self, reason: str) -> None:
        """The state machine knows it as one that was stopped."""
        self._task.failed("StopRequested", reason)
        raise Superseded(reason)

    def _seconds(self) -> int:
        return int(time.time() - self._instance.launched) + 1
