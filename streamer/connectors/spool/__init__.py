"""The spool of messages: what inputs receive and cannot ask for again is safe here until read.

On the driver a receiver (`receiver`, an event loop in a thread) makes records of what it is sent
(`blocks`) and has them written in groups (`commit`) to a store of segments (`store`): one sync of
the disk for all that waited. What is safe is read from there like any replayable source (`landed`).

An input lands messages so:

    def opened(self, room: Room) -> Landed:
        store = Store(room.directory, room.spool_limit)
        receive(room, "socket", lambda reception: self._receive(reception, store))
        return Landed(room.directory, inside=not room.local)

and in its coroutine `await commit.put(each([raw], meta), 1)`, which returns when it is safe.
"""
