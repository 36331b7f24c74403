"""Files of folders and object stores: a source that watches them, and a sink that writes them."""
