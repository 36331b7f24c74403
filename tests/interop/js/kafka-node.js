// Tests a broker with kafka-node, which supports Kafka up to 2.0: node kafka-node.js HOST:PORT PREFIX. Prints "ok NAME" for each
// scenario. The first failure ends it with exit code 1.
"use strict";

const assert = require("node:assert");
const { setTimeout: pause } = require("node:timers/promises");
const { Admin, ConsumerGroup, HighLevelProducer, KafkaClient, KeyedMessage, Offset } = require("kafka-node");

const [bootstrap, prefix] = process.argv.slice(2);
const PATIENCE_MS = 60000;
const COUNT = 40;
const CODECS = { none: 0, gzip: 1 }; // the other codecs need compiled packages

// Runs a call with a callback, and closes the client afterwards.
async function asked(call) {
  const client = new KafkaClient({ kafkaHost: bootstrap });
  try {
    return await new Promise((resolve, reject) => {
      client.once("error", reject);
      client.once("ready", () => call(client, (error, answer) => (error ? reject(error) : resolve(answer))));
    });
  } finally {
    await new Promise((resolve) => client.close(resolve));
  }
}

const create = (topic, partitions) =>
  asked((client, done) => client.createTopics([{ topic, partitions, replicationFactor: 1 }], done));

async function send(topic, partitions, attributes, begin = 0) {
  for (let partition = 0; partition < partitions; partition++) {
    const messages = [...Array(COUNT / partitions).keys()].map((number) => new KeyedMessage(`k${partition}-${number}`, `value ${number}`));
    const payload = { topic, partition, messages, attributes, timestamp: 1700000000000 };
    const answer = await asked((client, done) => {
      new HighLevelProducer(client, { requireAcks: 1, partitionerType: 4 }, () => partition).send([payload], done);
    });
    assert.strictEqual(answer[topic][partition], begin);
  }
}

async function until(condition) {
  for (const end = Date.now() + PATIENCE_MS; !(await condition()); await pause(20)) {
    assert(Date.now() < end, "waited in vain");
  }
}

class Member {
  constructor(topic) {
    this.found = [];
    this.failures = [];
    const settings = { kafkaHost: bootstrap, groupId: topic, fromOffset: "earliest", autoCommit: false, heartbeatInterval: 200 };
    this.group = new ConsumerGroup({ ...settings, sessionTimeout: 10000, retries: 20 }, topic);
    this.group.on("message", (message) => this.found.push(message));
    this.group.on("error", (error) => this.failures.push(error));
  }

  async share(count) {
    await until(() => {
      assert.deepStrictEqual(this.failures, []);
      return this.group.topicPayloads.length === count;
    });
  }

  async read(count) {
    await until(() => new Set(this.found.map((each) => `${each.partition} ${each.offset}`)).size >= count);
  }

  commit() {
    return new Promise((resolve, reject) => this.group.commit(true, (error) => (error ? reject(error) : resolve())));
  }

  close() {
    return new Promise((resolve) => this.group.close(false, resolve));
  }
}

async function roundTrip(topic, codec) {
  await create(topic, 1);
  await send(topic, 1, CODECS[codec]);
  const reader = new Member(topic);
  await reader.read(COUNT);
  assert.deepStrictEqual(reader.found.map((each) => [each.offset, each.key, each.value]),
    [...Array(COUNT).keys()].map((number) => [number, `k0-${number}`, `value ${number}`]));
  await reader.close();
}

const scenarios = {
  none: (topic) => roundTrip(topic, "none"),
  gzip: (topic) => roundTrip(topic, "gzip"),

  "two-members": async (topic) => {
    await create(topic, 4);
    const first = new Member(topic);
    await first.share(4);
    const second = new Member(topic);
    await Promise.all([first.share(2), second.share(2)]);
    await second.close();
    await first.share(4);
    await first.close();
  },

  commit: async (topic) => {
    await create(topic, 1);
    await send(topic, 1, CODECS.none);
    const first = new Member(topic);
    await first.read(COUNT);
    await first.commit();
    await first.close();
    await send(topic, 1, CODECS.none, COUNT);
    const second = new Member(topic);
    await second.read(1);
    assert.strictEqual(second.found[0].offset, COUNT);
    await second.close();
  },

  offsets: async (topic) => {
    await create(topic, 1);
    await send(topic, 1, CODECS.none);
    const latest = await asked((client, done) => new Offset(client).fetchLatestOffsets([topic], done));
    assert.strictEqual(latest[topic][0], COUNT);
  },

  admin: async (topic) => {
    await create(topic, 1);
    const topics = await asked((client, done) => new Admin(client).listTopics(done));
    assert(topic in topics[1].metadata);
    const member = new Member(topic);
    await member.share(1);
    const groups = await asked((client, done) => new Admin(client).listGroups(done));
    assert(topic in groups);
    const described = await asked((client, done) => new Admin(client).describeGroups([topic], done));
    assert.strictEqual(described[topic].state, "Stable");
    await member.close();
  },
};

(async () => {
  for (const [name, run] of Object.entries(scenarios)) {
    try {
      await run(`${prefix}-${name}`);
    } catch (error) {
      console.error(name, error);
      process.exit(1);
    }
    console.log("ok", name);
  }
  process.exit(0);
})();
