// Tests a registry with @kafkajs/confluent-schema-registry: node registry.js URL PREFIX. Prints "ok NAME" for each scenario. The first
// failure ends it with exit code 1.
"use strict";

const assert = require("node:assert");
const { COMPATIBILITY, SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

const [host, prefix] = process.argv.slice(2);
const registry = new SchemaRegistry({ host, retry: { retries: 2 } });
const RECORD = JSON.stringify({ type: "record", name: "Order", namespace: "shop", fields: [{ name: "id", type: "long" }] });
const WIDER = JSON.stringify({
  type: "record", name: "Order", namespace: "shop",
  fields: [{ name: "id", type: "long" }, { name: "note", type: "string", default: "none" }],
});
const BROKEN = JSON.stringify({ type: "record", name: "Order", namespace: "shop", fields: [{ name: "id", type: "string" }] });
const JSON_SCHEMA = JSON.stringify({ type: "object", properties: { id: { type: "integer" } }, required: ["id"] });
const PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string note = 2; }';

const scenarios = {
  async "avro"() {
    const { id } = await registry.register({ type: SchemaType.AVRO, schema: RECORD });
    const value = await registry.encode(id, { id: 7 });
    assert.strictEqual(value.readUInt8(0), 0);
    assert.strictEqual(value.readInt32BE(1), id);
    assert.strictEqual((await registry.decode(value)).id, 7);
    assert.strictEqual(await registry.getLatestSchemaId("shop.Order"), id);
    assert.strictEqual(await registry.getRegistryId("shop.Order", 1), id);
    assert.strictEqual(await registry.getRegistryIdBySchema("shop.Order", { type: SchemaType.AVRO, schema: RECORD }), id);
  },
  async "a reader's schema"() {
    const { id } = await registry.register({ type: SchemaType.AVRO, schema: RECORD });
    const value = await registry.encode(id, { id: 7 });
    const read = await registry.decode(value, { [SchemaType.AVRO]: { readerSchema: JSON.parse(WIDER) } });
    assert.strictEqual(read.note, "none");
  },
  async "evolving"() {
    const subject = `${prefix}-evolving`;
    const first = await registry.register({ type: SchemaType.AVRO, schema: RECORD }, { subject, compatibility: COMPATIBILITY.FULL });
    const second = await registry.register({ type: SchemaType.AVRO, schema: WIDER }, { subject, compatibility: COMPATIBILITY.FULL });
    assert.notStrictEqual(first.id, second.id);
    await assert.rejects(registry.register({ type: SchemaType.AVRO, schema: BROKEN }, { subject, compatibility: COMPATIBILITY.FULL }));
    await assert.rejects(registry.register({ type: SchemaType.AVRO, schema: WIDER }, { subject, compatibility: COMPATIBILITY.NONE }));
  },
  async "json schema"() {
    const { id } = await registry.register({ type: SchemaType.JSON, schema: JSON_SCHEMA }, { subject: `${prefix}-json` });
    assert.deepStrictEqual(await registry.decode(await registry.encode(id, { id: 1 })), { id: 1 });
    await assert.rejects(registry.encode(id, { id: "x" }));
  },
  async "protobuf"() {
    const { id } = await registry.register({ type: SchemaType.PROTOBUF, schema: PROTO }, { subject: `${prefix}-proto` });
    const read = await registry.decode(await registry.encode(id, { id: 1, note: "n" }));
    assert.strictEqual(read.note, "n");
  },
  async "references"() {
    const base = `${prefix}-base`;
    await registry.register({ type: SchemaType.AVRO, schema: RECORD }, { subject: base });
    const whole = JSON.stringify({ type: "record", name: "Whole", namespace: "shop", fields: [{ name: "order", type: "shop.Order" }] });
    const references = [{ name: "shop.Order", subject: base, version: 1 }];
    const { id } = await registry.register({ type: SchemaType.AVRO, schema: whole, references }, { subject: `${prefix}-whole` });
    const other = new SchemaRegistry({ host });
    const read = await other.decode(await other.encode(id, { order: { id: 3 } }));
    assert.strictEqual(read.order.id, 3);
  },
  async "errors"() {
    await assert.rejects(registry.getLatestSchemaId(`${prefix}-none`), /not found/);
    await assert.rejects(registry.getSchema(2000000000), /not found/);
  },
};

(async () => {
  for (const [name, run] of Object.entries(scenarios)) {
    try {
      await run();
    } catch (error) {
      console.error(`${name}: ${error.stack}`);
      process.exit(1);
    }
    console.log(`ok ${name}`);
  }
})();
