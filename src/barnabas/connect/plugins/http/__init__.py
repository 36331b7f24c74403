"""HTTP: a source that polls, and a sink that sends."""
