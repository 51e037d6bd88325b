"""JavaScript, run by QuickJS: a runtime without files, network or environment of its own.

Whatever a program asks of the outside (a module, an HTTP request) is a request that the host
answers before it runs the program again.
"""
