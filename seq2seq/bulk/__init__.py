"""A corpus translated by many workers: the job, its numbered shards, the worker. Knows no Ray."""
