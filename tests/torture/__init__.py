"""Kills a real broker again and again under load, and checks that nothing it acknowledged is lost."""
