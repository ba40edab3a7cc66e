def judged(batches, entries):
    from kafkaspec.spec.storage import offset_index as s
    log, file = [s.Batch(*b) for b in batches], [s.Entry(*e) for e in entries]
    return [s.verdict(log, b, e) for b, e in zip([None, *file[:-1]], file)] if file else []
