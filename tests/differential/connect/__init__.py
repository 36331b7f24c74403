"""The same requests to Kafka Connect and to Connect of barnabas: `record` asks Kafka's, `test_connect` compares ours."""
