"""A stream under load: how late it is at which rate, what makes it dearer, and what half an hour
of it leaves behind."""
