"""What the engine itself costs per task, against a hand-written floor and a peer, in one run.

`python -m benchmarks [--quick] [--json] [--check] [CASE ...]`
"""
