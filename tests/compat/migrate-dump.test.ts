/** Collections of mongodump, made with the package bson, and files that do not mean well. */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Binary, Long, ObjectId, serialize } from 'bson'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createDecrypt, loadRecords, readDatastoreKey, type LoadedRecords } from '../../src/migrate/index.ts'
import { createTestApp } from '../helpers/app.ts'
import { runCli } from '../helpers/cli.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { makeInstallation, type Installation } from './installation.ts'
import { makeOldKey } from './secrets.ts'

let old: Installation
beforeEach(() => {
  old = makeInstallation()
})
afterEach(() => old.remove())

/** A collection as mongodump writes it. */
const dump = (...documents: Record<string, unknown>[]): Buffer =>
  Buffer.concat(documents.map((document) => Buffer.from(serialize(document))))

const load = (...names: string[]): Promise<LoadedRecords> =>
  loadRecords(
    names.map((name) => join(old.path, name)),
    createDecrypt([]),
  )

describe('mongodump', () => {
  test('becomes the same records as exports of the API', async () => {
    const key = makeOldKey()
    const id = new ObjectId()
    old.write('datastore_key.json', key.file)
    const at = 'dump/st2/'
    old.write(
      `${at}key_value_pair_d_b.bson`,
      dump(
        {
          _id: id,
          name: 'plain',
          value: 'eu',
          secret: false,
          scope: 'st2kv.system',
          uid: 'key_value_pair:st2kv.system:plain',
        },
        { _id: new ObjectId(), name: 'ada:mine', value: key.encrypt('of ada'), secret: true, scope: 'st2kv.user' },
        {
          _id: new ObjectId(),
          name: 'gone',
          value: 'x',
          secret: false,
          scope: 'st2kv.system',
          expire_timestamp: new Date(0),
        },
      ),
    )
    old.write(`${at}key_value_pair_d_b.metadata.json`, { indexes: [] })
    old.write(
      `${at}rule_d_b.bson.gz`,
      gzipSync(
        dump({
          _id: new ObjectId(),
          name: 'on_hook',
          pack: 'default',
          ref: 'default.on_hook',
          enabled: true,
          trigger: 'core.2f1c2f9e-2a4c-4b5e-9d8a-0a1b2c3d4e5f',
          criteria: { 'trigger．body．place': { type: 'eq', pattern: 'here' } },
          action: { ref: 'core.local', parameters: { cmd: 'echo {{ st2kv.system.plain }}' } },
          type: { ref: 'standard', parameters: {} },
        }),
      ),
    )
    old.write(
      `${at}trigger_d_b.bson`,
      dump({
        _id: new ObjectId(),
        name: '2f1c2f9e-2a4c-4b5e-9d8a-0a1b2c3d4e5f',
        pack: 'core',
        ref: 'core.2f1c2f9e-2a4c-4b5e-9d8a-0a1b2c3d4e5f',
        type: 'core.st2.webhook',
        parameters: { url: 'old' },
      }),
    )
    const grant = new ObjectId()
    old.write(
      `${at}role_d_b.bson`,
      dump({ _id: new ObjectId(), name: 'ops', system: false, permission_grants: [grant.toHexString()] }),
    )
    old.write(
      `${at}permission_grant_d_b.bson`,
      dump({
        _id: grant,
        resource_uid: 'key_value_pair:st2kv.system:plain',
        resource_type: 'key_value_pair',
        permission_types: ['key_value_pair_view'],
      }),
    )
    old.write(
      `${at}user_role_assignment_d_b.bson`,
      dump(
        { _id: new ObjectId(), user: 'ada', role: 'ops', source: 'API', is_remote: false },
        { _id: new ObjectId(), user: 'ada', role: 'observer', source: 'API', is_remote: false },
      ),
    )
    old.write(
      `${at}live_action_d_b.bson`,
      dump({
        _id: new ObjectId(),
        action: 'core.local',
        status: 'succeeded',
        start_timestamp: Long.fromNumber(1),
        result: new Binary(Buffer.from('{}')),
      }),
    )
    old.write(`${at}token_d_b.bson`, dump({ _id: new ObjectId(), token: 'abc' }))

    const app = await createTestApp({
      settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    })
    try {
      const { code, stdout } = await runCli(['migrate', 'import', old.path, '--config-file', app.configFile, '-j'], {})
      const summary = JSON.parse(stdout) as { attention: unknown[]; problems: unknown[]; counts: unknown }
      expect(summary).toMatchObject({
        attention: [],
        problems: [],
        counts: {
          key: { imported: 2, skipped: 1 },
          rule: { imported: 1 },
          role: { imported: 1 },
          role_assignment: { imported: 1 },
        },
      })
      expect(code).toBe(0)
      const ask = async (...words: string[]) =>
        JSON.parse(
          (await runCli(['migrate', 'import', old.path, '--config-file', app.configFile, '-j', ...words], {})).stdout,
        ) as typeof summary
      expect(await ask()).toMatchObject({
        counts: { key: { unchanged: 2 }, rule: { unchanged: 1 }, role: { unchanged: 1 } },
      })
    } finally {
      await app.stop()
    }
  })

  test.each([
    ['a length that is not one', Buffer.from([0xff, 0xff, 0xff, 0x7f, 0, 0]), /its length is/],
    ['a file of zeros', Buffer.alloc(100), /its length is 0/],
    ['a cut document', dump({ name: 'a', value: 'b' }).subarray(0, -3), /cut off/],
    ['a document of noise', Buffer.concat([Buffer.from([12, 0, 0, 0]), Buffer.alloc(8, 0x7f)]), /not valid BSON/],
    ['a document that is a thousand levels deep', deep(1000), /nested deeper|not valid BSON/],
    ['a document that is a million levels deep', deep(1_000_000), /nested deeper|not valid BSON/],
    ['a file that is not packed as its name says', Buffer.from('no gzip'), /incorrect header check|is damaged|unknown/],
  ])('%s is named, and ends nothing else', async (name, bytes, problem) => {
    const ending = name.startsWith('a file that is not packed') ? '.gz' : ''
    old.write(`rule_d_b.bson${ending}`, bytes)
    old.write('key_value_pair_d_b.bson', dump({ name: 'good', value: 'x', scope: 'st2kv.system' }))
    const { problems, records } = await load(`rule_d_b.bson${ending}`, 'key_value_pair_d_b.bson')
    expect(problems).toEqual([expect.stringMatching(problem)])
    expect(records.key).toHaveLength(1)
  })
})

/** Documents inside each other. */
function deep(levels: number): Buffer {
  const head = Buffer.alloc(levels * 7)
  const total = levels * 8 + 5 - 1
  for (let level = 0; level < levels; level += 1) {
    head.writeInt32LE(total + 1 - level * 8, level * 7)
    head.write('\u0003a\0', level * 7 + 4)
  }
  return Buffer.concat([head, Buffer.from([5, 0, 0, 0, 0]), Buffer.alloc(levels)])
}

describe('exports', () => {
  fullOnly(test)('a file of a gigabyte is read piece by piece', async () => {
    const path = join(old.path, 'large.json')
    const file = openSync(path, 'w')
    writeSync(file, '[{"name": "first", "value": "1", "scope": "st2kv.system"}, {"name": "large", "value": "')
    ftruncateSync(file, 1024 * 1024 * 1024)
    writeSync(file, '"}, {"name": "last", "value": "2", "scope": "st2kv.system"}]', 1024 * 1024 * 1024)
    closeSync(file)
    const before = process.memoryUsage().rss
    const { records, problems } = await load('large.json')
    expect(problems).toEqual([expect.stringMatching(/record 2: it is larger than/)])
    expect(records.key.map(({ converted }) => converted.name)).toEqual(['system:first', 'system:last'])
    expect(process.memoryUsage().rss - before).toBeLessThan(512 * 1024 * 1024)
  })

  test('a record is what its attributes say, in whatever form it comes', async () => {
    old.write('one.json', { name: 'a', value: '1', scope: 'st2kv.system' })
    old.write('lines.json', '{"name": "b", "value": "{[\\"", "scope": "system"}\n{"name": "c", "value": "1"}\n')
    old.write(
      'several.yaml',
      '- {name: d, value: "1", scope: st2kv.system}\n- {name: e, value: "x: [y", scope: st2kv.user, user: ada}\n',
    )
    old.write('odd.json', '[1, "two", null, {"what": "is this"}]')
    old.write('empty.json', '[]')
    const { records, problems, left } = await load('one.json', 'lines.json', 'several.yaml', 'odd.json', 'empty.json')
    expect(records.key.map(({ converted }) => converted.name)).toEqual([
      'system:a',
      'system:b',
      'system:c',
      'system:d',
      'user:ada:e',
    ])
    expect(problems).toEqual([])
    expect(left).toEqual({ other: 1 })
  })

  test('names of packs and files do not lead anywhere', async () => {
    old.write('rules.json', [
      {
        name: '../../x',
        pack: '../y',
        trigger: { type: 'core.st2.webhook' },
        criteria: {},
        action: { ref: 'core.noop' },
      },
    ])
    old.write('roles.json', [{ name: '../../../etc/cron.d/x', permission_grants: [], system: false }])
    const app = await createTestApp()
    try {
      const { stdout } = await runCli(['migrate', 'import', old.path, '--config-file', app.configFile, '-j'], {})
      const { attention, counts } = JSON.parse(stdout) as {
        attention: { kind: string; outcome: string }[]
        counts: unknown
      }
      expect(attention).toEqual([expect.objectContaining({ kind: 'rule', outcome: 'refused' })])
      expect(counts).toMatchObject({ role: { imported: 1 } })
    } finally {
      await app.stop()
    }
  })

  test.each([
    ['no JSON', 'no', /is not JSON/],
    ['no key', '{"a": 1}', /is not one of StackStorm/],
    ['a short key', { aesKeyString: 'AAAA', hmacKey: { hmacKeyString: 'AAAA' } }, /is not one of StackStorm/],
    ['another mode', { ...makeOldKey().file, mode: 'GCM' }, /mode CBC/],
  ])('a key file with %s is named without its content', async (_name, content, problem) => {
    expect(await readDatastoreKey(old.write('key.json', content))).toEqual({ problem: expect.stringMatching(problem) })
  })
})
