"""An explicit, guarded state machine that drives an agent's plan."""
