"""Workload: arrival laws, length laws and traces, drawn into arrays before any engine runs."""
