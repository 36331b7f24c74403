"""What holds for every test: the same examples in every run, however slow the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "barnabas", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("barnabas")
