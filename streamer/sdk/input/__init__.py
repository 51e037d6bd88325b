"""The protocols of inputs."""
