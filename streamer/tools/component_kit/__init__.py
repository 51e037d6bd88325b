"""Kit for tests of components: they run on a scripted clock, without Spark."""
