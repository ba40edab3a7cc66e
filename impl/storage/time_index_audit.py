def judged(batches, entries):
    from kafkaspec.spec.storage import time_index as s
    return s.judge(s.initial(), batches, entries).result
