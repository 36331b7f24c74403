// Prints partition, offset and value of each record, and commits, until it is ended: node follow.js HOST:PORT TOPIC GROUP.
"use strict";

const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, groupId] = process.argv.slice(2);
const retry = { initialRetryTime: 200, maxRetryTime: 500, retries: 30, restartOnFailure: async () => true };
const kafka = new Kafka({ brokers: [bootstrap], clientId: "kafkajs", logLevel: logLevel.NOTHING, connectionTimeout: 10000, retry });
const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, metadataMaxAge: 2000, retry });

async function run() {
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({
    autoCommitInterval: 200,
    autoCommitThreshold: 1,
    eachMessage: async ({ partition, message }) => console.log(partition, message.offset, message.value.toString()),
  });
}

run().catch((error) => {
  console.error(error);
  process.exit(1);
});
