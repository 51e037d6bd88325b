"""Fields of many JSON lines as columns, without a Python object for each message.

Lines that a program writes look alike: the same keys in the same order, with other values between.
A shape is learnt from one line (`line_shape`). Others are compared with it byte by byte, many at a
time (`match_lines`), and their values are cut out as columns (`field_columns`). A line that differs
in any other way is none of its shape, and is parsed by itself as ever: so nothing has to be known
here of all that JSON may hold.
"""
