"""Reads logs straight from data folders, beside a broker that writes them or without one. Nothing is ever written."""
