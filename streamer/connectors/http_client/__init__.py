"""HTTP as a client: what the `http_client` output and input and the `http` processor share.

A component puts `client_fields("POST")` among its fields and `client_problems` into its spec's
`check` (see `fields`), and makes an `HttpClient(parsed, context)` when it is built (see `client`).
`client.send(batch, ex)` makes a request of a batch, sends it with Benthos's retries, and returns an
`Answer`, of which `client.messages(answer)` makes messages; `client.open(batch, ex)` is for an
answer whose body is read bit by bit. What fails raises an `HttpError`, which has the answer's code,
headers and body where there was one. A client may be used by several threads; its connections
outlive the task.
"""
