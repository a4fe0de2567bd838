"""The agent against real servers: a Collector and a Prometheus, built from tools/."""
