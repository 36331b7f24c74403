"""Torments a whole cluster of real processes under load, beside Apache Kafka if wanted, and checks what was promised."""
