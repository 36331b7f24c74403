"""Jobs: continuous work on Spark that topics declare, with one driver for all views. Only `driver/` imports Spark."""
