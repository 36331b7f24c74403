// Tests a broker with kafkajs: node interop.js HOST:PORT PREFIX [SCENARIO...]. Runs all scenarios, or those that are named, and prints
// "ok NAME" for each. The first failure ends it with exit code 1. INTEROP_CA, INTEROP_CERTIFICATE and INTEROP_KEY name the files of TLS;
// INTEROP_MECHANISM, INTEROP_USER and INTEROP_PASSWORD are for SASL.
"use strict";

const assert = require("node:assert");
const { readFileSync } = require("node:fs");
const { setTimeout: pause } = require("node:timers/promises");
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");

const [bootstrap, prefix, ...wanted] = process.argv.slice(2);
const { INTEROP_CA, INTEROP_CERTIFICATE, INTEROP_KEY, INTEROP_MECHANISM, INTEROP_USER, INTEROP_PASSWORD } = process.env;
const ssl = INTEROP_CA && { ca: [readFileSync(INTEROP_CA)] };
if (INTEROP_CERTIFICATE) Object.assign(ssl, { cert: readFileSync(INTEROP_CERTIFICATE), key: readFileSync(INTEROP_KEY) });
const sasl = INTEROP_MECHANISM && { mechanism: INTEROP_MECHANISM.toLowerCase(), username: INTEROP_USER, password: INTEROP_PASSWORD };
const kafka = new Kafka({ brokers: [bootstrap], clientId: "kafkajs", logLevel: logLevel.NOTHING, retry: { retries: 5 }, ssl, sasl });
const BASE_TIME = 1700000000000;
const PATIENCE_MS = 30000;

const messages = [...Array(20).keys()].map((index) => ({ key: `k${index}`, value: `value ${index}`, headers: { name: "h" } }));
messages.push({ key: "tombstone", value: null }, { key: null, value: "no key" }, { key: "", value: "" });
messages.forEach((message, index) => Object.assign(message, { timestamp: String(BASE_TIME + index * 1000), partition: 0 }));

async function using(client, work) {
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.disconnect();
  }
}

const create = (topic, numPartitions = 1) =>
  using(kafka.admin(), (admin) => admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions }] }));

const send = (topic, sent, { compression, ...options } = {}) =>
  using(kafka.producer(options), (producer) => producer.send({ topic, messages: sent, compression, acks: -1 }));

async function until(condition) {
  for (const end = Date.now() + PATIENCE_MS; !(await condition()); await pause(20)) {
    assert(Date.now() < end, "waited in vain");
  }
}

async function read(topic, groupId, count, { offset, ...options } = {}) {
  const found = [];
  await using(kafka.consumer({ groupId, heartbeatInterval: 200, ...options }), async (consumer) => {
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await consumer.run({ eachMessage: async ({ message }) => void found.push(message) });
    if (offset !== undefined) consumer.seek({ topic, partition: 0, offset });
    await until(() => found.length >= count);
  });
  return found;
}

const text = (buffer) => (buffer === null ? null : buffer.toString());

async function roundTrip(name, options) {
  await create(name);
  await send(name, messages, options);
  const found = await read(name, name, messages.length);
  found.forEach((message, index) => {
    const sent = messages[index];
    assert.deepStrictEqual([text(message.key), text(message.value), message.timestamp], [sent.key, sent.value, sent.timestamp]);
    assert.strictEqual(message.headers.name?.toString(), sent.headers?.name);
  });
}

const scenarios = {
  "codec-none": (name) => roundTrip(name, { compression: CompressionTypes.None }),
  "codec-gzip": (name) => roundTrip(name, { compression: CompressionTypes.GZIP }),
  idempotent: (name) => roundTrip(name, { idempotent: true, maxInFlightRequests: 1 }),
  megabytes: async (name) => {
    await create(name);
    const value = Buffer.alloc(1 << 20, "x");
    for (let turn = 0; turn < 3; turn++) await send(name, [{ value }]);
    const found = await read(name, name, 3, { maxBytesPerPartition: 100000 });
    found.forEach((message) => assert.strictEqual(message.value.length, value.length));
  },
  "by-time": async (name) => {
    await create(name);
    await send(name, messages);
    const [{ offset }] = await using(kafka.admin(), (admin) => admin.fetchTopicOffsetsByTimestamp(name, BASE_TIME + 6500));
    assert.strictEqual(offset, "7");
    const found = await read(name, name, 1, { offset });
    assert(found.some((message) => message.offset === "7"));
  },
  rebalance: async (name) => {
    await create(name, 4);
    const shares = {};
    const member = (id) => {
      // kafkajs sends heartbeats only between fetches, so a fetch must end well before the rebalance timeout
      const consumer = kafka.consumer({ groupId: name, heartbeatInterval: 200, rebalanceTimeout: 5000, maxWaitTimeInMs: 500 });
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => (shares[id] = payload.memberAssignment[name]?.length ?? 0));
      return consumer;
    };
    const start = async (consumer) => {
      await consumer.subscribe({ topics: [name], fromBeginning: true });
      await consumer.run({ eachMessage: async () => {} });
    };
    await using(member("first"), async (first) => {
      await start(first);
      await until(() => shares.first === 4);
      await using(member("second"), async (second) => {
        await start(second);
        await until(() => shares.first === 2 && shares.second === 2);
      });
      await until(() => shares.first === 4);
    });
  },
  admin: async (name) => {
    await create(name, 2);
    await send(name, messages);
    await using(kafka.admin(), async (admin) => {
      await admin.createPartitions({ topicPartitions: [{ topic: name, count: 3 }] });
      const resource = { type: ConfigResourceTypes.TOPIC, name };
      const kept = "100000000000000"; // ms; long, because the messages are years old and a retention check may run at any time
      await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: [{ name: "retention.ms", value: kept }] }] });
      const { resources } = await admin.describeConfigs({ includeSynonyms: true, resources: [resource] });
      assert.strictEqual(resources[0].configEntries.find((entry) => entry.configName === "retention.ms").configValue, kept);
      await admin.setOffsets({ groupId: name, topic: name, partitions: [{ partition: 0, offset: "5" }] });
      const [committed] = await admin.fetchOffsets({ groupId: name, topics: [name] });
      assert.strictEqual(committed.partitions.find((each) => each.partition === 0).offset, "5");
      await admin.deleteTopicRecords({ topic: name, partitions: [{ partition: 0, offset: "3" }] });
      const offsets = await admin.fetchTopicOffsets(name);
      assert.strictEqual(offsets.find((each) => each.partition === 0).low, "3");
      await admin.describeCluster();
      assert((await admin.listGroups()).groups.some((group) => group.groupId === name));
      await admin.deleteGroups([name]);
      await admin.deleteTopics({ topics: [name] });
    });
  },
};

(async () => {
  for (const [name, run] of Object.entries(scenarios)) {
    if (wanted.length && !wanted.includes(name)) continue;
    try {
      await run(`${prefix}-${name}`);
    } catch (error) {
      console.error(name, error);
      process.exit(1);
    }
    console.log("ok", name);
  }
})();
