"""`python -m fsm_agent`: the same as `fsm-agent`."""

from fsm_agent.cli.main import main

if __name__ == "__main__":
    main()
