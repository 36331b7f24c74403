"""The interfaces of an HTTP service of barnabas: requests, responses, routes (`routing.py`), and its seam to the host (`service.py`).

Nothing here does input or output. The host, with the web server, is in `services/`.
"""
