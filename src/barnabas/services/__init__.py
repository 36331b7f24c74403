"""The host of the HTTP services around the broker: one process, one web server, one entry a service in `table.py`.

A service brings a `Router` (`web/routing.py`). Ports, TLS, log-in, limits, access log, metrics and health are done here, once.
"""
