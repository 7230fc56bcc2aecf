"""Serving: a compiled discrete-event engine, its schedulers and routers, and the metrics read from it."""
