"""The template with a fault, which the judge must find: a follower is told the epoch that it asked for, even if this log
never had it. Brokers before KIP-279 answered so, and two logs could stay different for good.

    kafkaspec judge --target "python3 targets/examples/python/faulty.py" leader_epochs
"""

from leader_epochs import LeaderEpochs, serve


class Faulty(LeaderEpochs):
    def end_offset_for(self, requestedEpoch, logEndOffset):
        answer = super().end_offset_for(requestedEpoch, logEndOffset)
        return answer if answer["epoch"] == -1 else {**answer, "epoch": requestedEpoch}

    OPERATIONS = {**LeaderEpochs.OPERATIONS, "endOffsetFor": end_offset_for}


if __name__ == "__main__":
    serve("Leader epochs in Python, faulty", "1", {"leader_epochs": Faulty})
