"""The command `submit`: runs the program on a cluster."""
