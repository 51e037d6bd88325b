"""What holds for the whole suite."""

from hypothesis import HealthCheck, settings

# Both look at the clock on the wall, and on a loaded machine find what is not there. What may take
# no longer than it should is held by tests of its own, which count work or processor time.
settings.register_profile("streamer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("streamer")
