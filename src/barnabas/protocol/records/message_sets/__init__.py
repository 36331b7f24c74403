"""Message sets, the record formats before batches (magic 0 and 1). Converts them to batches for Produce 0 to 2, and batches to them for
Fetch 0 to 3.

The log stores no message sets: it holds only batches (magic 2). A message is

    offset int64 | size int32 | CRC-32 of all after it uint32 | magic int8 | attributes int8
    | timestamp int64, of magic 1 only (ms) | key length int32, key | value length int32, value

Numbers are big-endian, lengths of -1 stand for null. A set is a sequence of messages without a count; the last one may be cut off.
Compressed messages are a set that is the value of one message without a key, the wrapper. Its attributes name the codec, and its offset
is the offset of the last message inside. Offsets inside are absolute in magic 0; in magic 1 they count from the first message.
"""
