"""`python -m otel_gpu`: the command line."""

from __future__ import annotations

from otel_gpu.cli import main

if __name__ == "__main__":
    main()
