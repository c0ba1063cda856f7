"""The library for Python actions; it ships with the server and needs only Python itself."""
