"""Windows that follow event times: every kind with a workload, a job, and what it has to say."""
