"""Groups of the consumer protocol (KIP-848): the coordinator assigns, each member goes there at its own pace."""
