"""The connectors that come with barnabas, a module each."""
