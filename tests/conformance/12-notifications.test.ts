/** Notifications of jobs: from a failing job to the receiver, and every way to look at them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { startReceiver, type Received, type Receiver } from '../helpers/receiver.ts'
import { runToEnd } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { rowsOf } from './support.ts'

interface Row {
  id: string
  destination: string
  condition: string
  status: string
  title: string
  attempts: number
  rule?: string
  execution?: string
  error?: string
  web_url?: string
}

const SECRET = `whsec_${Buffer.from('a secret of twenty-four bytes').toString('base64')}`
const TOKEN = 'path-token-of-the-chat-0123456789'

let folder: TemporaryFolder
let receiver: Receiver
let server: InProcessApp
const define = (name: string, text: string): void => {
  mkdirSync(join(folder.path, 'notifications'), { recursive: true })
  writeFileSync(join(folder.path, 'notifications', `${name}.yaml`), `name: ${name}\n${text}`)
}

beforeAll(async () => {
  folder = makeFolder()
  receiver = await startReceiver()
  define(
    'hook',
    `channel: webhook\nwebhook_url: ${receiver.url}/hook\nsecret: "{{ svckv.system.hook | decrypt_kv }}"\non: all\n`,
  )
  define('chat', `channel: slack\nwebhook_url: "{{ svckv.system.chat | decrypt_kv }}"\n`)
  define('dead', `channel: webhook\nwebhook_url: http://127.0.0.1:1/dead\n`)
  define('broken', 'channel: smoke\n')
  const pack = join(folder.path, 'packs', 'shop')
  mkdirSync(join(pack, 'notifications'), { recursive: true })
  mkdirSync(join(pack, 'actions'))
  mkdirSync(join(pack, 'rules'))
  mkdirSync(join(pack, 'triggers'))
  writeFileSync(
    join(pack, 'pack.yaml'),
    'name: shop\nref: shop\ndescription: a shop\nversion: 1.0.0\nauthor: somebody\n',
  )
  writeFileSync(join(pack, 'notifications/own.yaml'), `name: own\nchannel: webhook\nwebhook_url: ${receiver.url}/own\n`)
  writeFileSync(join(pack, 'notifications/bad.yaml'), 'name: bad\nchannel: ntfy\n')
  writeFileSync(
    join(pack, 'actions/try.yaml'),
    'name: try\nrunner_type: local-shell-cmd\nnotify: [{use: own, on: [failed, succeeded]}]\nparameters:\n  cmd: {type: string}\n',
  )
  writeFileSync(join(pack, 'triggers/go.yaml'), 'name: go\npayload_schema: {type: object}\n')
  writeFileSync(
    join(pack, 'rules/nightly.yaml'),
    'name: nightly\nenabled: true\ntrigger: {type: shop.go}\nnotify: [{use: hook, on: [failed, recovered], message: "{{ job }} {{ exit_code }}: {{ stderr }}"}]\n' +
      'action: {ref: core.local, parameters: {cmd: "{{ trigger.cmd }}"}}\n',
  )
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'notifications.digest_threshold': '0', 'log.level': 'DEBUG' },
  })
  await server.call('PUT', '/v1/keys/hook', { name: 'hook', value: SECRET, secret: true })
  await server.call('PUT', '/v1/keys/chat', { name: 'chat', value: `${receiver.url}/services/${TOKEN}`, secret: true })
})
afterAll(async () => {
  await server.stop()
  await receiver.close()
  folder.remove()
})
beforeEach(() => {
  receiver.received.length = 0
  receiver.answer = () => ({ status: 200, text: 'ok' })
})

const list = async (query = ''): Promise<Row[]> => (await server.call<Row[]>('GET', `/v1/notifications${query}`)).body
const at = (path: string): Received[] => receiver.received.filter((each) => each.path === path)
const got = (path: string, count: number): Promise<Received[]> =>
  waitFor(`${count} at ${path}`, () => (at(path).length >= count ? at(path) : undefined))
const settled = (query: string, count: number): Promise<Row[]> =>
  waitFor(`${count} of ${query} to end`, async () => {
    const rows = await list(query)
    return rows.length === count && rows.every(({ status }) => !['pending', 'sending'].includes(status))
      ? rows
      : undefined
  })
const dispatch = (cmd: string) => server.call('POST', '/v1/webhooks/svc', { trigger: 'shop.go', payload: { cmd } })

test('a rule that fails is told once, with its text; its recovery once', async () => {
  await dispatch('echo no space >&2; exit 3')
  const [failed] = await got('/hook', 1)
  expect(failed?.body).toMatchObject({
    type: 'svc.notification.failed',
    data: {
      job: 'shop.nightly',
      rule: 'shop.nightly',
      action: 'core.local',
      exit_code: 3,
      stderr: 'no space',
      status: 'failed',
      attempt: 1,
    },
  })
  expect(failed?.headers['webhook-signature']).toMatch(/^v1,/)
  await dispatch('true')
  const told = await got('/hook', 2)
  expect(told[1]?.body).toMatchObject({ type: 'svc.notification.recovered', data: { job: 'shop.nightly' } })
  await dispatch('true')
  const rows = await settled('?rule=shop.nightly', 2)
  expect(rows).toMatchObject([
    { condition: 'recovered', status: 'sent', title: 'Recovered: shop.nightly' },
    {
      condition: 'failed',
      status: 'sent',
      title: 'Failed: shop.nightly',
      web_url: expect.stringContaining('/#/history/'),
    },
  ])
  expect(told.map(({ headers }) => headers['webhook-id'])).toEqual(rows.map(({ id }) => id).toReversed())
})

fullOnly(test)('an action notifies the destination of its pack, until its file is gone', async () => {
  await runToEnd(server, { cmd: 'true' }, { action: 'shop.try' })
  await got('/own', 1)
  const { body } = await server.call<{ name: string; pack?: string }[]>('GET', '/v1/notifications/destinations')
  expect(body.map(({ name }) => name)).toEqual(['chat', 'dead', 'hook', 'shop.own'])
  expect(body.at(-1)).toMatchObject({ pack: 'shop', file: 'notifications/own.yaml', state: 'ok' })
})

test('a broken file is named, and the others work', () => {
  expect(server.log()).toMatch(/notifications\/broken\.yaml:2 \(channel\): there is no channel "smoke"/)
  expect(server.log()).toMatch(/notifications\/bad\.yaml.*"topic" is needed/)
})

test('no secret of a destination stands in a row, an answer, an error or the log', async () => {
  receiver.answer = ({ path }) => ({ status: 500, text: `no ${path} ${TOKEN}` })
  const { body: outcome } = await server.call<{ sent: boolean; message: string }>(
    'POST',
    '/v1/notifications/destinations/chat/test',
  )
  expect(outcome).toMatchObject({ sent: false, message: expect.stringMatching(/^HTTP 500: no /) })
  const answers = [outcome, await list(), (await server.call('GET', '/v1/notifications/destinations')).body]
  const rows = rowsOf<Record<string, unknown>>(server, 'select * from notifications')
  for (const text of [JSON.stringify(answers), JSON.stringify(rows), server.log()]) {
    expect(text).not.toContain(TOKEN)
    expect(text).not.toContain(SECRET)
  }
  expect(JSON.stringify(answers)).toContain('{{ svckv.system.chat | decrypt_kv }}')
  const { body } = await server.call('GET', '/v1/notifications/destinations/chat')
  expect(body).toMatchObject({ state: 'failing', last_error: expect.stringContaining('HTTP 500') })
  const { body: status } = await server.call<{ attention: string[] }>('GET', '/v1/status')
  expect(status.attention.join()).toMatch(/did not reach the destination "chat" of notifications/)
})

describe('what could not be sent', () => {
  fullOnly(test)('is replayed with its id', async () => {
    receiver.answer = () => ({ status: 400 })
    const rule = { name: 'one', trigger: { type: 'shop.go' }, action: { ref: 'core.noop' }, enabled: false }
    const action = { name: 'replayed', pack: 'shop', runner_type: 'local-shell-cmd', parameters: {}, notify: 'chat' }
    expect((await server.call('POST', '/v1/rules', { ...rule, notify: 'chat' })).body).toMatchObject({ notify: 'chat' })
    expect((await server.call('POST', '/v1/actions', action)).body).toMatchObject({ notify: 'chat' })
    await runToEnd(server, { cmd: 'exit 1' }, { action: 'shop.replayed' })
    const [failed] = await settled('?status=failed&destination=chat', 2)
    expect(failed).toMatchObject({ attempts: 1, error: expect.stringContaining('HTTP 400') })
    receiver.answer = () => ({ status: 200, text: 'ok' })
    receiver.received.length = 0
    const path = `/v1/notifications/${failed?.id ?? ''}`
    expect(await server.call('POST', `${path}/replay`)).toMatchObject({
      status: 200,
      body: { status: 'pending', attempts: 0 },
    })
    await waitFor(
      'it to be sent',
      async () => (await server.call<Row>('GET', path)).body.status === 'sent' || undefined,
    )
    expect(receiver.received).toHaveLength(1)
  })

  fullOnly(test)('and what nobody can receive is visible', async () => {
    const action = {
      name: 'nowhere',
      pack: 'shop',
      runner_type: 'local-shell-cmd',
      parameters: {},
      notify: ['nowhere', 'dead'],
    }
    await server.call('POST', '/v1/actions', action)
    await runToEnd(server, { cmd: 'exit 1' }, { action: 'shop.nowhere' })
    const [row] = await settled('?destination=nowhere', 1)
    expect(row).toMatchObject({ status: 'failed', error: expect.stringContaining('notifications/nowhere.yaml') })
    const isTriedAgain = ([waiting]: Row[]): boolean => waiting?.status === 'pending' && waiting.error !== undefined
    await waitFor(
      'another attempt to be planned',
      async () => isTriedAgain(await list('?destination=dead')) || undefined,
    )
  })

  test('a wrong `notify` is refused, naming the field', async () => {
    const rule = { name: 'two', trigger: { type: 'shop.go' }, action: { ref: 'core.noop' } }
    for (const notify of [
      { use: 'chat' },
      ['../x'],
      [{ use: 'chat', on: 'sometimes' }],
      [{ on: 'failed' }],
      [{ use: 'chat', too: 1 }],
    ]) {
      expect(await server.call('POST', '/v1/rules', { ...rule, notify })).toMatchObject({
        status: 400,
        body: { faultstring: expect.stringContaining('notify') },
      })
    }
  })
})

fullOnly(test)('files that change count after a reload', async () => {
  define('late', `channel: webhook\nwebhook_url: ${receiver.url}/late\n`)
  rmSync(join(folder.path, 'notifications/dead.yaml'))
  await server.reload()
  expect((await server.call('POST', '/v1/notifications/destinations/late/test')).body).toMatchObject({ sent: true })
  expect((await server.call('GET', '/v1/notifications/destinations/dead')).status).toBe(404)
})

fullOnly(test)('lists page by page, and refuse an unknown status', async () => {
  const all = await list('?limit=100')
  const first = await server.call<Row[]>('GET', '/v1/notifications?limit=1')
  expect(first.body).toEqual(all.slice(0, 1))
  expect(first.headers.get('x-total-count')).toBe(String(all.length))
  expect(await list(`?limit=1&before_id=${all[0]?.id ?? ''}`)).toEqual(all.slice(1, 2))
  expect((await server.call('GET', '/v1/notifications?status=lost')).status).toBe(400)
})
