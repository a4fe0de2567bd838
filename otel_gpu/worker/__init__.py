"""NVML in a process of its own, because a hung driver call cannot be interrupted.

`supervisor.py` is what the agent talks to. It keeps one worker alive (`process.py`, started as
`bootstrap.py` says) and leaves out GPUs that hang (`suspects.py`). The worker's own side is
`child.py`. Between them, `wire.py` says what the messages are and `frames.py` makes bytes of them;
`channel.py` waits for them with a deadline, `page.py` names the call that is in flight, and
`failures.py` says how it went wrong. Nothing is imported here, so that the worker loads no more
than it needs.
"""
