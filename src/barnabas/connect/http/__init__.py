"""Kafka Connect's REST interface: routes, bodies, answers, rights."""
