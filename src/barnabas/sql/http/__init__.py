"""SQL over HTTP: `surface` has the routes, `formats` writes rows as JSON, JSON lines, CSV and Arrow."""
