"""The host of the HTTP services beside the broker: one process and one web server. Each service has an entry in `table.py`.

A service provides a `Router` (`web/routing.py`). This package implements ports, TLS, log-in, limits, access log, metrics and
health for all services.
"""
