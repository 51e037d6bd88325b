"""Scanner components: how a stream of bytes is cut into messages, one file each."""
