"""WebAssembly, run by wasmtime: modules without files, network or environment."""
