"""Change data capture: rows of databases as they are, and every change of them, in its order.

What was read is spooled together with its position in the database's log, so that each change is
spooled once, however often the connection or the program ends.
"""
