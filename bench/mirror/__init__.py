"""Copies of topics in another cluster: mirror links beside MirrorMaker 2."""
