// node-postgres against the Postgres listener: node postgres.js PORT TABLE. Prints "ok NAME" for each scenario.

'use strict'

const assert = require('assert')
const { Client, Pool } = require('pg')

const [port, table] = process.argv.slice(2)
const settings = { host: '127.0.0.1', port: Number(port), user: 'anna', database: 'flights' }

const scenarios = {
  'a simple query': async (client) => {
    const found = await client.query("select 1 as a, 'x' as b, null as c, true as d, cast(1.5 as double) as e")
    assert.deepStrictEqual(found.rows, [{ a: 1, b: 'x', c: null, d: true, e: 1.5 }])
    assert.deepStrictEqual(found.fields.map((each) => each.dataTypeID), [23, 25, 25, 16, 701])
  },
  'several statements': async (client) => {
    const found = await client.query('select 1 as a; select 2 as a')
    assert.deepStrictEqual(found.map((each) => each.rows), [[{ a: 1 }], [{ a: 2 }]])
  },
  'values': async (client) => {
    const text = 'select cast($1 as int) as a, cast($2 as varchar) as b, cast($3 as boolean) as c, cast($4 as timestamp) as d'
    const found = await client.query(text, [7, "it's", false, '2024-02-29 01:02:03'])
    assert.deepStrictEqual(found.rows[0], { a: 7, b: "it's", c: false, d: new Date(2024, 1, 29, 1, 2, 3) })
  },
  'a named statement': async (client) => {
    for (let number = 0; number < 5; number++) {
      const found = await client.query({ name: 'more', text: 'select cast($1 as int) + 1 as a', values: [number] })
      assert.strictEqual(found.rows[0].a, number + 1)
    }
  },
  'binary results': async (client) => {
    const found = await client.query({ text: 'select cast($1 as bigint) as a, cast(2.5 as double) as b', values: [5], binary: true })
    assert.deepStrictEqual(found.rows, [{ a: '5', b: 2.5 }].map((row) => ({ ...row, a: found.rows[0].a })))
    assert.strictEqual(Number(found.rows[0].a), 5)
  },
  'rows in and out': async (client) => {
    await client.query(`create table ${table} (a int, b string)`)
    assert.strictEqual((await client.query(`insert into ${table} values ($1, $2)`, [1, 'one'])).rowCount, 1)
    assert.deepStrictEqual((await client.query({ text: `select * from ${table}`, rowMode: 'array' })).rows, [[1, 'one']])
  },
  'errors': async (client) => {
    await assert.rejects(client.query('select * from nowhere'), (error) => error.code === '42P01' && error.severity === 'ERROR')
    await assert.rejects(client.query('select cast($1 as int) as a', ['x']), (error) => error.code === '22P02')
    assert.strictEqual((await client.query('select 1 as a')).rows[0].a, 1)
  },
  'a transaction': async (client) => {
    await client.query('begin')
    await assert.rejects(client.query('select * from nowhere'))
    await assert.rejects(client.query('select 1'), (error) => error.code === '25P02')
    await client.query('rollback')
  },
  'a pool': async () => {
    const pool = new Pool({ ...settings, max: 5 })
    const found = await Promise.all([...Array(40).keys()].map((number) => pool.query('select cast($1 as int) as a', [number])))
    assert.deepStrictEqual(found.map((each) => each.rows[0].a), [...Array(40).keys()])
    await pool.end()
  },
}

async function main () {
  const client = new Client(settings)
  await client.connect()
  for (const [name, scenario] of Object.entries(scenarios)) {
    await scenario(client)
    console.log(`ok ${name}`)
  }
  await client.end()
}

main().catch((error) => {
  console.error(error)
  process.exit(1)
})
