"""Any connector of Debezium, in a JVM of its own."""
