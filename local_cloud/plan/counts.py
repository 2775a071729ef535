"""What a training needs, by counts alone: work and bytes of an epoch. Nothing is measured; memory is memory.py's."""

from dataclasses import dataclass

from common.saga.epoch_work import EpochWork, epoch_work
from local_cloud.explain import predict_job
from local_cloud.payload import Computers, GraphCounts, PassPayload, pass_links
from local_cloud.prepare import PreparedJob


@dataclass(frozen=True)
class Work(EpochWork):
    payload: PassPayload

    def links(self, computers: Computers) -> dict[str, int]:
        return pass_links(self.payload, computers)


def count_work(job: PreparedJob, counts: GraphCounts) -> Work:
    payload, work = predict_job(job, counts), epoch_work(job.programs, job.sizes)
    return Work(**{**vars(work), "flops": payload.flops}, payload=payload)
