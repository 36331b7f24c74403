"""Connectors of other products by their class names and keys, with connectors of barnabas behind them."""
