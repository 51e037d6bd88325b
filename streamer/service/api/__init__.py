"""The API of many streams over HTTP: one table of endpoints, which routes and OpenAPI come from."""
