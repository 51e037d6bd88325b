"""DuckDB for queries over batches: a process beside a worker, which sees the batch and no more."""
