"""The engine, its threads, and the memory allocator: what MXNet reads when it loads."""
