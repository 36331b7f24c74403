"""Records with registered schemas as columns of Arrow: the type of a schema, and arrays decoded from records and encoded into them."""
