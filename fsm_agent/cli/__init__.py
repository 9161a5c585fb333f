"""The command line: `fsm-agent`, also `python -m fsm_agent`. A file a command; each is imported when it is called."""
