"""A slow reference interpreter of plans, written from the page on plan semantics and from nothing else.

It shares no code with the engine, keeps no counters and no queues, and works everything out again at every step. The
engine's own tests compare themselves with it.
"""

from .generator import outcomes_for, plans, random_plan, raw_plans
from .graph import Graph, validity
from .interpreter import Verdict, interpret

__all__ = ["Graph", "Verdict", "interpret", "outcomes_for", "plans", "random_plan", "raw_plans", "validity"]
