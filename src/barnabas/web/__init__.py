"""The interfaces of an HTTP service of barnabas: requests, responses, routes (`routing.py`), and the interface to the host
(`service.py`).

No I/O. The host, with the web server, is in `services/`.
"""
