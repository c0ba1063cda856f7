"""What Python actions of packs import; it comes with the server, and needs nothing but Python itself."""
