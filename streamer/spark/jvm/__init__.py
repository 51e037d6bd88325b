"""The JVM: its options, processes and objects."""
