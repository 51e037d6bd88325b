"""The spool of messages: what inputs receive and cannot ask for again is safe here until read.

On the driver a receiver (`async_receiver`, an event loop in a thread) makes records of what it is
sent (`blocks`) and has them written in groups (`group_commit`) to a store of segments
(`store`): one sync of the disk for all that waited. What is safe is read from there like any
replayable source (`spool_source`).

An input spools messages so:

    def open(self, context: InputContext) -> SpoolSource:
        store = SpoolStore.for_input(context)
        start_receiver(context, "socket", lambda reception: self._receive(reception, store))
        return SpoolSource.for_input(context)

and in its coroutine `await commit.put(pack_each([raw], meta))`, which returns when it is safe.
"""
