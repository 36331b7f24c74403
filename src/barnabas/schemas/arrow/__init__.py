"""Records with registered schemas as columns of Arrow: the Arrow type of a schema, decoding of records to arrays, and encoding
of arrays to records."""
