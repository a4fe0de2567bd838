"""What the simulated box is made of.

Boards and boxes as data, the physics of one GPU, what each family of NVML's calls says of it, and
faults. Nothing is imported here: `simulated.py`, one floor up, puts the parts together.
"""
