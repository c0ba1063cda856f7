/** Rules on triggers that tell about executions, datastore items and inquiries: authors get what they may view (decision 32). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createRbacFiles, type Grant, type RbacFiles } from '../helpers/rbac.ts'
import { finalStatuses, type Answer, type ExecutionAnswer } from '../helpers/server.ts'
import { openEvents, type EventClient } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'
import type { ErrorAnswer } from './support.ts'

const actionTrigger = 'core.svc.generic.actiontrigger'
const valueChange = 'core.svc.key_value_pair.value_change'
const onType = (ref: string): Grant => ({ types: ['trigger_view'], on: ref.replace('core.', 'trigger:core:') })
const author: readonly Grant[] = [
  { types: ['rule_all'], on: 'pack:watch' },
  { types: ['action_execute'], on: 'action:core:noop' },
  { types: ['trigger_list', 'trace_list'] },
]

const folder = makeFolder()
let files: RbacFiles
let server: InProcessApp
const headersOf: Record<string, Record<string, string>> = {}
const clients: EventClient[] = []

const as = <T = Record<string, unknown>>(
  user: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer<T & ErrorAnswer>> => server.call(method, path, body, headersOf[user] ?? {})

async function apply(): Promise<void> {
  const { status, text } = await as('admin', 'POST', '/v1/rbac/definitions/apply')
  if (status !== 200) throw new Error(text)
}

const rule = (name: string, type: string, more: object = {}) => ({
  name,
  pack: 'watch',
  enabled: true,
  trigger: { type },
  action: { ref: 'core.noop' },
  ...more,
})
const save = (user: string, given: object) => as<{ id: string }>(user, 'POST', '/v1/rules', given)

async function run(action: string, parameters: object, user = 'admin'): Promise<ExecutionAnswer> {
  const { status, body, text } = await as<ExecutionAnswer>(user, 'POST', '/v1/executions', { action, parameters })
  if (status !== 201) throw new Error(text)
  await waitFor('the execution', async () => {
    const { body: now } = await as<ExecutionAnswer>('admin', 'GET', `/v1/executions/${body.id}`)
    return finalStatuses.includes(now.status)
  })
  return body
}

interface InstanceAnswer {
  id: string
  payload: Record<string, unknown>
  payload_reduced?: string
  status: string
}

/** The instance of the end of an execution, once its rules have been looked at. */
async function instanceOf(type: string, text: string): Promise<string> {
  let id: string | undefined
  await waitFor(`an instance of ${type}`, async () => {
    const { body } = await as<InstanceAnswer[]>('admin', 'GET', `/v1/triggerinstances?trigger_type=${type}`)
    const found = body.find(({ payload, status }) => status !== 'pending' && JSON.stringify(payload).includes(text))
    id = found?.id
    return found !== undefined
  })
  return id ?? ''
}

async function follow(user: string): Promise<EventClient> {
  const client = await openEvents(`${server.urls.stream}/v1/stream?events=*`, headersOf[user])
  clients.push(client)
  await waitFor('the stream', () => client.raw() !== '')
  return client
}

beforeAll(async () => {
  files = createRbacFiles(folder.path)
  files.assign('admin', 'system_admin')
  files.define('alice', [
    ...author,
    onType(actionTrigger),
    onType(valueChange),
    { types: ['action_view'], on: 'pack:core' },
  ])
  files.define('bob', [...author, onType(actionTrigger), onType(valueChange), { types: ['stream_view'] }])
  files.define('carol', author)
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
  })
  headersOf['admin'] = await signIn(server, 'admin', firstPassword(folder.path))
  for (const user of ['alice', 'bob', 'carol']) {
    const { body } = await as<{ key: string }>('admin', 'POST', '/v1/apikeys', { user })
    headersOf[user] = { 'Svc-Api-Key': body.key }
  }
}, 60_000)

afterAll(async () => {
  for (const client of clients) client.close()
  await server.stop()
  folder.remove()
})

describe('32 rules on the ends of executions', () => {
  it('bind with trigger_view alone, and the refusal says what to grant', async () => {
    const { status, body } = await save('carol', rule('hers', actionTrigger))
    expect([status, body.faultstring]).toEqual([
      403,
      `User "carol" doesn't have required permission (trigger_view) to use trigger ${actionTrigger}: its payloads tell about records of all users. The permission is granted on resource "trigger:core:svc.generic.actiontrigger"`,
    ])
  })

  it('give their authors the results that these may view', async () => {
    const criteria = { 'trigger.action_ref': { type: 'eq', pattern: 'core.local' } }
    for (const user of ['alice', 'bob']) {
      expect((await save(user, rule(`of_${user}`, actionTrigger, { criteria }))).status).toBe(201)
    }
    const seen = { ...criteria, 'trigger.result.stdout': { type: 'contains', pattern: 'canary' } }
    for (const user of ['alice', 'bob'])
      expect((await save(user, rule(`reads_${user}`, actionTrigger, { criteria: seen }))).status).toBe(201)
    const { id } = await run('core.local', { cmd: 'echo canary-1' })
    const instance = await instanceOf(actionTrigger, id)
    type Explained = { rules: { rule: { ref: string }; verdict: string; reduced?: string }[]; payload_reduced?: string }
    const { body: all } = await as<Explained>('admin', 'GET', `/v1/triggerinstances/${instance}/explain`)
    expect(all.rules.map(({ rule: { ref }, verdict, reduced }) => [ref, verdict, reduced === undefined])).toEqual([
      ['watch.of_alice', 'matched', true],
      ['watch.of_bob', 'matched', false],
      ['watch.reads_alice', 'matched', true],
      ['watch.reads_bob', 'not_matched', false],
    ])
    expect(all.rules[1]?.reduced).toBe(
      `The payload is reduced to execution_id, status, start_timestamp, action_ref, runner_ref, action_name, end_timestamp, elapsed_seconds, attempt, will_retry, trace_id, web_url: User "bob" doesn't have required permission "execution_view" on resource "execution:${id}". Grant action_view on "action:core:local".`,
    )
    for (const path of [
      `/v1/triggerinstances/${instance}`,
      `/v1/triggerinstances/${instance}/explain`,
      `/v1/triggerinstances?trigger_type=${actionTrigger}`,
    ]) {
      const [ofBob, ofAlice] = [await as('bob', 'GET', path), await as('alice', 'GET', path)]
      expect([path, ofBob.status, ofBob.text.includes('canary-1')]).toEqual([path, 200, false])
      expect(ofBob.text).toContain('payload_reduced')
      expect(ofAlice.text).not.toContain('payload_reduced')
    }
  })

  it('a trace holds ids and references, no content', async () => {
    const { id } = await run('core.local', { cmd: 'echo canary-2' })
    const { body: traces } = await as<{ id: string }[]>('admin', 'GET', `/v1/traces?execution=${id}`)
    const trace = traces[0]?.id ?? ''
    expect((await as('bob', 'GET', `/v1/traces/${trace}`)).status).toBe(403)
    for (const path of [`/v1/traces/${trace}`, `/v1/traces/${trace}/components`]) {
      expect((await as('admin', 'GET', path)).text).not.toContain('canary-2')
    }
  })
})

describe('32 rules on datastore items', () => {
  it('see no value and no name of an item that their author may not view', async () => {
    expect((await save('bob', rule('items', valueChange))).status).toBe(201)
    for (const value of ['canary-old', 'canary-new']) {
      await as('admin', 'PUT', '/v1/keys/vault', { name: 'vault', value })
    }
    const id = await instanceOf(valueChange, 'canary-new')
    const { body } = await as<InstanceAnswer>('bob', 'GET', `/v1/triggerinstances/${id}`)
    expect(Object.keys(body.payload)).toEqual(['old_object', 'new_object'])
    expect(JSON.stringify(body.payload)).not.toMatch(/canary|vault/)
    expect(body.payload_reduced).toContain('"key_value_pair_view" on resource "key_value_pair:svckv.system:vault"')
    files.define('bob', [
      ...author,
      onType(actionTrigger),
      onType(valueChange),
      { types: ['stream_view'] },
      { types: ['key_value_pair_view'], on: 'key_value_pair:svckv.system:vault' },
    ])
    await apply()
    const { body: whole } = await as<InstanceAnswer>('bob', 'GET', `/v1/triggerinstances/${id}`)
    expect(JSON.stringify(whole.payload)).toContain('canary-old')
  })
})

describe('32 the general stream', () => {
  it('follows the rights of the subscriber while it is open: records, live actions, output and announcements', async () => {
    const base: Grant[] = [...author, onType(actionTrigger), { types: ['stream_view'] }]
    files.define('bob', base)
    await apply()
    const [ofBob, ofAdmin] = [await follow('bob'), await follow('admin')]
    const round = async (mark: string): Promise<string[]> => {
      const local = await run('core.local', { cmd: `echo ${mark}` })
      const said = await run('core.announcement', { route: mark, message: { text: mark } })
      // Allowed all along, so that everything before it has come.
      const last = await run('core.noop', {})
      const isLast = ({ event, data }: { event: string; data: string }) =>
        event === 'svc.execution__update' && data.includes(last.id) && data.includes('"status":"succeeded"')
      await Promise.all([ofBob.frame(isLast), ofAdmin.frame(isLast)])
      const about = [local.id, said.id, mark]
      const names = (client: EventClient) =>
        [
          ...new Set(
            client.frames.filter(({ data }) => about.some((text) => data.includes(text))).map(({ event }) => event),
          ),
        ].toSorted()
      expect(names(ofAdmin)).toEqual(
        [
          `svc.announcement__${mark}`,
          'svc.execution.output__create',
          'svc.execution__create',
          'svc.execution__update',
          'svc.liveaction__create',
          'svc.liveaction__update',
        ].toSorted(),
      )
      return names(ofBob)
    }
    expect(await round('canary-3')).toEqual([])
    files.define('bob', [...base, { types: ['action_view'], on: 'pack:core' }])
    await apply()
    expect(await round('canary-4')).toHaveLength(6)
    files.define('bob', base)
    await apply()
    expect(await round('canary-5')).toEqual([])
  })
})
