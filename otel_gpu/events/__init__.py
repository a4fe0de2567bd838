"""What happens to GPUs: Xid errors and changes of their status, counted and told as log records.

`kernel_log` and the driver's event set give happenings, `tally` folds them into counts and records,
`status` watches `hw.status`, `points` gives the counts, `export` sends the records.
"""
