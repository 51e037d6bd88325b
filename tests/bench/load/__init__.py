"""A stream under load: how late it is at which rate, what makes it dearer, and what three quarters
of an hour leave behind."""
