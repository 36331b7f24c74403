"""What a fetch asks for, what it finds, how it waits, and what has to be brought to memory before it is answered."""
