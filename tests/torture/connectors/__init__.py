"""Kills engines that share connectors."""
