"""The schema registry of barnabas beside Karapace, on the same broker."""
