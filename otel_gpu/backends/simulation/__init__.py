"""What the simulated box is made of: boards and boxes as data, the physics of one GPU, faults.

Nothing is imported here: `simulated.py`, one floor up, puts the parts together.
"""
