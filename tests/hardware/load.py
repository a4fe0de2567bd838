"""Keeps every GPU busy for so many seconds: bf16 products of 8192 x 8192 matrices. Needs PyTorch.

python -m tests.hardware.load 60
"""

from __future__ import annotations

import sys
import time

import torch

SIZE = 8192
AHEAD = 8  # products queued on each GPU before it is waited for, so that none runs dry


def main(seconds: float) -> None:
    gpus = range(torch.cuda.device_count())
    matrices = [torch.randn(SIZE, SIZE, device=f"cuda:{i}", dtype=torch.bfloat16) for i in gpus]
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        for matrix in matrices:
            for _ in range(AHEAD):
                torch.mm(matrix, matrix)
        for gpu in gpus:
            torch.cuda.synchronize(gpu)


if __name__ == "__main__":
    main(float(sys.argv[1]))
