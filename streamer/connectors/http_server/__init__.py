"""HTTP served by components: paths on the stream's own server, or a server at their own address.

A handler is a coroutine that takes aiohttp's request and what the path's parameters stand for, and
returns a response. `registry.EndpointRegistry` is the stream's server as inputs and outputs see it
(`context.endpoints`); `component_server.serve_paths` listens at an address that the config names.
"""
