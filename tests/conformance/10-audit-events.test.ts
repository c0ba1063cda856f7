/**
 * Contract 10, 10.3: every audit event of its table, as a real server writes it, and that nothing can be changed through the
 * API without one.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askBySocket } from '../helpers/control-socket.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth, firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { call, waitForStatus, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'

type AuditRecord = Record<string, unknown> & { _event: string; short_message: string }
type Fields = Record<string, unknown>

interface Row {
  event: string
  /** How its message begins; `<id>` stands for an id. */
  text: string
  /** What causes it; resolves with what else its record says. */
  readonly act: () => Promise<Fields>
}

const folder = makeFolder()
const auditFile = join(folder.path, 'logs', 'svc.audit.log')
let server: TestApp
let password: string
let admin: Record<string, string>
/** Every operation that was used and accepted: `POST /v1/rules`. */
const used = new Set<string>()
/** By what they are of. */
const ids: Record<string, string> = {}

const somePack = {
  'pack.yaml': 'name: some\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'actions/say.yaml': 'name: say\nrunner_type: noop\n',
}
const packFiles: Record<string, string> = {
  ...Object.fromEntries(Object.entries(somePack).map(([path, text]) => [`elsewhere/some/${path}`, text])),
  'packs/mine/pack.yaml': 'name: mine\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'notifications/dead.yaml': 'name: dead\nchannel: webhook\nwebhook_url: http://127.0.0.1:1/\n',
  'packs/mine/config.schema.yaml': 'secret:\n  type: string\n  secret: true\n',
  'packs/mine/actions/show.yaml':
    'name: show\nrunner_type: local-shell-cmd\nparameters:\n  cmd: {type: string, default: "echo {{ config_context.secret | length }}"}\n',
  'configs/mine.yaml': 'secret: "{{ svckv.system.hidden }}"\n',
  'packs/mine/actions/waits.yaml': 'name: waits\nrunner_type: orquesta\nentry_point: workflows/waits.yaml\n',
  'packs/mine/actions/workflows/waits.yaml': 'version: 1.0\ntasks:\n  wait: {action: core.noop, delay: 3600}\n',
  'rbac/assignments/admin.yaml': 'username: admin\nroles: [system_admin]\n',
  'rbac/assignments/looker.yaml': 'username: looker\nroles: [observer]\n',
}

const readRecords = (): AuditRecord[] =>
  readFileSync(auditFile, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as AuditRecord)

/** The operations of the API that change something, as the server publishes them. */
async function changingOperations(): Promise<string[]> {
  const { body } = await server.call<{ paths: Record<string, object> }>('GET', '/v1/openapi.json')
  return Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods)
      .filter((method) => ['post', 'put', 'delete', 'patch'].includes(method))
      .map((method) => `${method.toUpperCase()} ${path}`),
  )
}

/** A request of the administrator that must be accepted. @param operation as published, such as `PUT /v1/keys/{name}` */
async function change<T = Fields>(operation: string, variables: Fields = {}, body?: unknown): Promise<Answer<T>> {
  const [method = '', pattern = ''] = operation.split(' ')
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => String(variables[name]))
  const answer = await server.call<T>(method, path, body, admin)
  if (answer.status >= 300) throw new Error(`${operation}: ${answer.status} ${answer.text}`)
  used.add(operation)
  return answer
}

async function login(authorization: string): Promise<Fields> {
  const headers = authorization === '' ? {} : { Authorization: authorization }
  const { status } = await call(`${server.urls.auth}/tokens`, 'POST', {}, headers)
  expect(status).toBe(401)
  return {}
}

async function execute(action: string, more: Fields = {}): Promise<string> {
  return (await change<{ id: string }>('POST /v1/executions', {}, { action, ...more })).body.id
}

function statusOf(id: string, statuses?: readonly string[]): Promise<ExecutionAnswer> {
  const asAdmin: TestApp = { ...server, call: (method, path, body) => server.call(method, path, body, admin) }
  return waitForStatus(asAdmin, id, statuses)
}

/** @returns the id of one that is under way */
async function running(): Promise<string> {
  const id = await execute('core.local', { parameters: { cmd: 'sleep 1000' } })
  await statusOf(id, ['running'])
  return id
}

/** Sends an event that the rule `default.made` is about. */
async function sendEvent(): Promise<void> {
  await change('POST /v1/webhooks/{hook}', { hook: 'made' }, { n: 1 })
}

const rule = {
  name: 'made',
  enabled: true,
  trigger: { type: 'core.svc.webhook', parameters: { url: 'made' } },
  action: { ref: 'core.noop' },
}
const action = { name: 'made', runner_type: 'noop' }
const weekly = { unit: 'weeks', delta: 1 }
const alias = { name: 'said', pack: 'mine', action_ref: 'core.noop', formats: ['say nothing'] }
const policy = {
  name: 'made',
  pack: 'mine',
  resource_ref: 'mine.show',
  policy_type: 'action.concurrency',
  parameters: { threshold: 5 },
}
const about = (who: Fields = {}): Fields => ({ _user: 'admin', _remote_address: '127.0.0.1', ...who })

const rows: Row[] = [
  // Tokens and logins.
  {
    event: 'token.issued',
    text: 'Access granted to "admin" with the token set to expire at "20',
    async act() {
      const headers = { Authorization: basicAuth('admin', password) }
      const { body } = await call<{ id: string; token: string }>(`${server.urls.auth}/tokens`, 'POST', {}, headers)
      used.add('POST /auth/v1/tokens')
      Object.assign(ids, { token: body.id, tokenValue: body.token })
      return about({ _token_id: body.id })
    },
  },
  {
    event: 'user.registered',
    text: 'Registered new user "admin".',
    act: () => Promise.resolve(about()),
  },
  {
    event: 'token.validated',
    text: 'Token with id "<id>" is validated.',
    async act() {
      await change('POST /auth/v1/tokens/validate', {}, { token: ids['tokenValue'] })
      return about({ _token_id: ids['token'] })
    },
  },
  {
    event: 'token.revoked',
    text: 'Token with id "<id>" of "admin" is revoked.',
    async act() {
      await change('DELETE /auth/v1/tokens/{token}', { token: ids['token'] })
      return about({ _token_id: ids['token'] })
    },
  },
  {
    event: 'token.revoked',
    text: 'Token with id "<id>" of "looker" is revoked.',
    async act() {
      const headers = { Authorization: basicAuth('looker', 'a long enough password') }
      const { body } = await call<{ id: string; token: string }>(`${server.urls.auth}/tokens`, 'POST', {}, headers)
      const answer = await call(`${server.urls.auth}/tokens/current`, 'DELETE', undefined, {
        'X-Auth-Token': body.token,
      })
      expect(answer.status).toBe(204)
      used.add('DELETE /auth/v1/tokens/current')
      return about({ _user: 'looker', _token_id: body.id })
    },
  },
  {
    event: 'token.revoked',
    text: 'All tokens of "looker" are revoked.',
    async act() {
      const { status } = await call(`${server.urls.auth}/tokens?user=looker`, 'DELETE', undefined, admin)
      expect(status).toBe(200)
      used.add('DELETE /auth/v1/tokens')
      return about({ _owner: 'looker' })
    },
  },
  { event: 'login.refused', text: 'Invalid credentials provided', act: () => login(basicAuth('admin', 'wrong')) },
  { event: 'login.refused', text: 'Authorization header not provided', act: () => login('') },
  { event: 'login.refused', text: 'Invalid authorization header', act: () => login('Basic ???') },
  { event: 'login.refused', text: 'Unsupported authorization type: Digest', act: () => login('Digest x') },
  { event: 'login.refused', text: 'Access denied to anonymous user.', act: () => login(basicAuth('', 'x')) },
  {
    event: 'permission.denied',
    text: 'User "looker" ',
    async act() {
      const headers = await signIn(server, 'looker', 'a long enough password')
      expect((await server.call('POST', '/v1/executions', { action: 'core.noop' }, headers)).status).toBe(403)
      return { _user: 'looker', _path: '/executions', _method: 'POST' }
    },
  },

  // Users and API keys.
  {
    event: 'user.created',
    text: 'User "made" created',
    async act() {
      await change('POST /v1/users', {}, { name: 'made', password: 'a long enough password' })
      return about({ _name: 'made' })
    },
  },
  {
    event: 'user.updated',
    text: 'User "made" updated.',
    async act() {
      await change('PUT /v1/users/{name}', { name: 'made' }, { nicknames: { chat: 'm' } })
      return about({ _name: 'made' })
    },
  },
  {
    event: 'user.deleted',
    text: 'User "made" deleted',
    async act() {
      await change('DELETE /v1/users/{name}', { name: 'made' })
      return about({ _name: 'made' })
    },
  },
  {
    event: 'api_key.created',
    text: 'ApiKey created. ApiKey.id=<id>',
    async act() {
      const { body } = await change<{ id: string; key: string }>('POST /v1/apikeys', {}, {})
      Object.assign(ids, { apiKey: body.id, apiKeyValue: body.key })
      return about({ _api_key_id: body.id })
    },
  },
  {
    event: 'api_key.validated',
    text: 'API key with id "<id>" is validated.',
    async act() {
      await server.call('GET', '/v1/user', undefined, { 'Svc-Api-Key': ids['apiKeyValue'] ?? '' })
      return about({ _api_key_id: ids['apiKey'] })
    },
  },
  {
    event: 'api_key.updated',
    text: 'API Key updated. ApiKey.id=<id>.',
    async act() {
      await change('PUT /v1/apikeys/{id_or_key}', { id_or_key: ids['apiKey'] }, { enabled: false })
      return about({ _api_key_id: ids['apiKey'], _enabled: false })
    },
  },
  {
    event: 'api_key.disabled',
    text: 'API key with id "<id>" is disabled.',
    async act() {
      await server.call('GET', '/v1/user', undefined, { 'Svc-Api-Key': ids['apiKeyValue'] ?? '' })
      return about({ _api_key_id: ids['apiKey'] })
    },
  },
  {
    event: 'api_key.deleted',
    text: 'ApiKey deleted. ApiKey.id=<id>',
    async act() {
      await change('DELETE /v1/apikeys/{id_or_key}', { id_or_key: ids['apiKey'] })
      return about({ _api_key_id: ids['apiKey'] })
    },
  },
  {
    event: 'rbac.definitions_applied',
    text: '',
    async act() {
      await change('POST /v1/rbac/definitions/apply', {}, {})
      return about()
    },
  },

  // Executions.
  {
    event: 'execution.requested',
    text: 'Action execution requested. LiveAction.id=<id>, ActionExecution.id=<id>',
    async act() {
      ids['execution'] = await execute('core.noop')
      return about({ _execution_id: ids['execution'], _action: 'core.noop' })
    },
  },
  ...[
    ['requested', 'scheduled'],
    ['scheduled', 'running'],
    ['running', 'succeeded'],
  ].map(([from, to]) => ({
    event: 'execution.status_changed',
    text: `The status of action execution is changed from ${from} to ${to}. <LiveAction.id=<id>, ActionExecution.id=<id>>`,
    act: () => Promise.resolve({ _execution_id: ids['execution'], _from: from, _to: to }),
  })),
  {
    event: 'execution.launched',
    text: 'Launching action execution. ',
    act: () => Promise.resolve({ _execution_id: ids['execution'] }),
  },
  {
    event: 'execution.completed',
    text: 'Liveaction completed',
    act: () => Promise.resolve({ _execution_id: ids['execution'], _status: 'succeeded' }),
  },
  {
    event: 'execution.requested',
    text: 'Action execution requested. ',
    async act() {
      const again = await change<{ id: string }>('POST /v1/executions/{id}/re_run', { id: ids['execution'] }, {})
      return about({ _execution_id: again.body.id })
    },
  },
  {
    event: 'execution.canceled',
    text: 'Canceling action execution. LiveAction.id=<id>, ActionExecution.id=<id>',
    async act() {
      const id = await running()
      await change('DELETE /v1/executions/{id}', { id })
      return about({ _execution_id: id })
    },
  },
  {
    event: 'execution.paused',
    text: 'Pausing action execution. LiveAction.id=<id>, ActionExecution.id=<id>',
    async act() {
      ids['workflow'] = await execute('mine.waits')
      await statusOf(ids['workflow'], ['running'])
      await change('PUT /v1/executions/{id}', { id: ids['workflow'] }, { status: 'pausing' })
      return about({ _execution_id: ids['workflow'] })
    },
  },
  {
    event: 'execution.resumed',
    text: 'Resuming action execution. LiveAction.id=<id>, ActionExecution.id=<id>',
    async act() {
      await change('PUT /v1/executions/{id}', { id: ids['workflow'] }, { status: 'resuming' })
      return about({ _execution_id: ids['workflow'] })
    },
  },
  {
    event: 'execution.updated',
    text: 'Action execution updated. LiveAction.id=<id>, ActionExecution.id=<id>',
    async act() {
      const id = await running()
      await change('PUT /v1/executions/{id}', { id }, { status: 'failed' })
      return about({ _execution_id: id, _status: 'failed' })
    },
  },
  {
    event: 'inquiry.responded',
    text: 'Inquiry "<id>" was responded to.',
    async act() {
      const parent = await running()
      const id = await execute('core.ask', { context: { parent: { execution_id: parent } } })
      await statusOf(id, ['pending'])
      await change('PUT /v1/inquiries/{id}', { id }, { response: { continue: true } })
      await change('DELETE /v1/executions/{id}', { id: parent })
      return about({ _execution_id: id })
    },
  },
  {
    event: 'records.purged',
    text: 'Old records of the kind executions were purged.',
    async act() {
      await change('POST /v1/purge/{kind}', { kind: 'executions' }, { before: new Date().toISOString() })
      return about()
    },
  },

  {
    event: 'backup.made',
    text: 'A backup of the database was made.',
    async act() {
      await change('POST /v1/backups')
      return about()
    },
  },

  // Rules.
  {
    event: 'rule.created',
    text: 'Rule created. Rule.id=<id>',
    async act() {
      ids['rule'] = (await change<{ id: string }>('POST /v1/rules', {}, rule)).body.id
      return about({ _rule_id: ids['rule'], _rule: 'default.made' })
    },
  },
  {
    event: 'rule.enforced',
    text: 'Rule enforced. Execution <id>, ',
    async act() {
      await sendEvent()
      return { _rule_id: ids['rule'] }
    },
  },
  {
    event: 'rule.updated',
    text: 'Rule updated. Rule.id=<id>',
    async act() {
      const body = { ...rule, action: { ref: 'core.nothing' } }
      await change('PUT /v1/rules/{ref_or_id}', { ref_or_id: ids['rule'] }, body)
      return about({ _rule_id: ids['rule'] })
    },
  },
  {
    event: 'rule.enforcement_failed',
    text: 'Rule enforcement failed. ',
    async act() {
      await sendEvent()
      return { _rule_id: ids['rule'], _reason: expect.stringContaining('core.nothing') as unknown }
    },
  },
  {
    event: 'notification.tested',
    text: 'A test was sent to the destination "dead".',
    async act() {
      const { body } = await change('POST /v1/notifications/destinations/{name}/test', { name: 'dead' })
      ids['notification'] = String(body['id'])
      return { _destination: 'dead', _sent: false, _user: 'admin' }
    },
  },
  {
    event: 'notification.replayed',
    text: 'Notification replayed. Notification.id=<id>',
    async act() {
      await change('POST /v1/notifications/{id}/replay', { id: ids['notification'] })
      return { _destination: 'dead', _user: 'admin' }
    },
  },
  {
    event: 'trigger_instance.re_emitted',
    text: '',
    async act() {
      const failed = readRecords().find(({ _event }) => _event === 'rule.enforcement_failed')
      await change('POST /v1/triggerinstances/{id}/re_emit', { id: failed?.['_trigger_instance_id'] }, {})
      return about()
    },
  },
  {
    event: 'rule.deleted',
    text: 'Rule deleted. Rule.id=<id>',
    async act() {
      await change('DELETE /v1/rules/{ref_or_id}', { ref_or_id: ids['rule'] })
      return about({ _rule_id: ids['rule'] })
    },
  },

  // The datastore.
  {
    event: 'key_value_pair.set',
    text: 'PUT /v1/keys/hidden succeeded id=<id>',
    async act() {
      await change('PUT /v1/keys/{name}', { name: 'hidden' }, { name: 'hidden', value: 'canary', secret: true })
      return about()
    },
  },
  {
    event: 'key_value_pair.decrypted',
    text: 'User admin decrypted the value hidden',
    async act() {
      const { body } = await server.call('GET', '/v1/keys/hidden?decrypt=true', undefined, admin)
      expect(body['value']).toBe('canary')
      return about()
    },
  },
  {
    event: 'key_value_pair.decrypted',
    text: 'User admin decrypted the values [hidden]',
    async act() {
      await server.call('GET', '/v1/keys?decrypt=true', undefined, admin)
      return about()
    },
  },
  {
    event: 'key_value_pair.decrypted',
    text: 'User admin decrypted the value hidden',
    async act() {
      const id = await execute('mine.show')
      const { result } = await statusOf(id)
      expect(result['stdout']).toBe('6')
      return { _user: 'admin', _execution_id: id }
    },
  },
  {
    event: 'key_value_pair.deleted',
    text: 'DELETE /v1/keys/hidden succeeded id=<id>',
    async act() {
      await change('DELETE /v1/keys/{name}', { name: 'hidden' })
      return about()
    },
  },

  // Content.
  {
    event: 'action.created',
    text: 'Action created. Action.id=<id>',
    async act() {
      ids['action'] = (await change<{ id: string }>('POST /v1/actions', {}, action)).body.id
      return about({ _action_id: ids['action'], _action: 'default.made' })
    },
  },
  {
    event: 'action.updated',
    text: 'Action updated. Action.id=<id>',
    async act() {
      await change('PUT /v1/actions/{ref_or_id}', { ref_or_id: ids['action'] }, { ...action, description: 'new' })
      return about({ _action_id: ids['action'] })
    },
  },
  {
    event: 'action.deleted',
    text: 'Action deleted. Action.id=<id>',
    async act() {
      await change('DELETE /v1/actions/{ref_or_id}', { ref_or_id: ids['action'] }, {})
      return about({ _action_id: ids['action'] })
    },
  },
  {
    event: 'runner_type.updated',
    text: 'Runner Type updated. RunnerType.id=<id>',
    async act() {
      await change('PUT /v1/runnertypes/{name_or_id}', { name_or_id: 'noop' }, { enabled: true })
      return about({ _runner: 'noop', _enabled: true })
    },
  },
  {
    event: 'action_alias.created',
    text: 'Action alias created. ActionAlias.id=<id>',
    async act() {
      ids['alias'] = (await change<{ id: string }>('POST /v1/actionalias', {}, alias)).body.id
      return about({ _alias_id: ids['alias'], _alias: 'mine.said' })
    },
  },
  {
    event: 'action_alias.updated',
    text: 'Action alias updated. ActionAlias.id=<id>',
    async act() {
      await change('PUT /v1/actionalias/{ref_or_id}', { ref_or_id: ids['alias'] }, { ...alias, enabled: false })
      return about({ _alias_id: ids['alias'], _enabled: false })
    },
  },
  {
    event: 'action_alias.deleted',
    text: 'Action alias deleted. ActionAlias.id=<id>',
    async act() {
      await change('DELETE /v1/actionalias/{ref_or_id}', { ref_or_id: ids['alias'] })
      return about({ _alias_id: ids['alias'] })
    },
  },
  {
    event: 'policy.created',
    text: 'Policy created. Policy.id=<id>',
    async act() {
      ids['policy'] = (await change<{ id: string }>('POST /v1/policies', {}, policy)).body.id
      return about({ _policy_id: ids['policy'], _policy: 'mine.made' })
    },
  },
  {
    event: 'policy.updated',
    text: 'Policy updated. Policy.id=<id>',
    async act() {
      await change('PUT /v1/policies/{ref_or_id}', { ref_or_id: ids['policy'] }, { ...policy, enabled: false })
      return about({ _policy_id: ids['policy'], _enabled: false })
    },
  },
  {
    event: 'policy.deleted',
    text: 'Policy deleted. Policy.id=<id>',
    async act() {
      await change('DELETE /v1/policies/{ref_or_id}', { ref_or_id: ids['policy'] })
      return about({ _policy_id: ids['policy'] })
    },
  },
  {
    event: 'trigger_type.created',
    text: 'TriggerType created. TriggerType.id=<id>',
    async act() {
      const type = { name: 'kind', pack: 'mine', payload_schema: { type: 'object' } }
      await change('POST /v1/triggertypes', {}, type)
      return about({ _trigger_type: 'mine.kind' })
    },
  },
  {
    event: 'trigger_type.updated',
    text: 'TriggerType updated. TriggerType.id=<id>',
    async act() {
      const body = { name: 'kind', pack: 'mine', description: 'new' }
      await change('PUT /v1/triggertypes/{ref_or_id}', { ref_or_id: 'mine.kind' }, body)
      return about({ _trigger_type: 'mine.kind' })
    },
  },
  {
    event: 'trigger.created',
    text: 'Trigger created. Trigger.id=<id>',
    async act() {
      const body = { name: 'one', pack: 'mine', type: 'core.svc.IntervalTimer', parameters: weekly }
      ids['trigger'] = (await change<{ id: string }>('POST /v1/triggers', {}, body)).body.id
      return about({ _trigger_id: ids['trigger'], _trigger: 'mine.one' })
    },
  },
  {
    event: 'trigger.updated',
    text: 'Trigger updated. Trigger.id=<id>',
    async act() {
      const body = { name: 'one', pack: 'mine', type: 'core.svc.IntervalTimer', parameters: weekly, description: 'new' }
      await change('PUT /v1/triggers/{id}', { id: ids['trigger'] }, body)
      return about({ _trigger_id: ids['trigger'] })
    },
  },
  {
    event: 'trigger.deleted',
    text: 'Trigger deleted. Trigger.id=<id>',
    async act() {
      await change('DELETE /v1/triggers/{id}', { id: ids['trigger'] })
      return about({ _trigger_id: ids['trigger'] })
    },
  },
  {
    event: 'trigger_type.deleted',
    text: 'TriggerType deleted. TriggerType.id=<id>',
    async act() {
      await change('DELETE /v1/triggertypes/{ref_or_id}', { ref_or_id: 'mine.kind' })
      return about({ _trigger_type: 'mine.kind' })
    },
  },

  {
    event: 'action.cloned',
    text: 'Action cloned. Action.id=<id>',
    async act() {
      const body = { dest_pack: 'default', dest_action: 'copied' }
      await change('POST /v1/actions/{ref_or_id}/clone', { ref_or_id: 'core.noop' }, body)
      return about({ _action: 'default.copied', _source_action: 'core.noop' })
    },
  },
  {
    event: 'execution.imported',
    text: 'Executions imported.',
    async act() {
      const execution = {
        id: '5a1f0c2e4b0a1d2c3e4f5070',
        status: 'succeeded',
        start_timestamp: '2026-01-31T12:00:00Z',
        action: { ref: 'core.local', runner_type: 'local-shell-cmd' },
      }
      await change('POST /v1/executions/import', {}, { executions: [execution] })
      return about({ _count: 1 })
    },
  },
  {
    event: 'execution_output.imported',
    text: 'Output of executions imported.',
    async act() {
      const execution = {
        id: '5a1f0c2e4b0a1d2c3e4f5075',
        status: 'succeeded',
        start_timestamp: '2026-01-31T12:00:00Z',
        action: { ref: 'core.local', runner_type: 'local-shell-cmd' },
      }
      await change('POST /v1/executions/import', {}, { executions: [execution] })
      const record = {
        id: '5a1f0c2e4b0a1d2c3e4f5076',
        execution_id: execution.id,
        output_type: 'stdout',
        data: 'hello',
        timestamp: '2026-01-31T12:00:00Z',
      }
      await change('POST /v1/executions/output/import', {}, { output: [record] })
      return about({ _count: 1 })
    },
  },
  {
    event: 'trigger_instance.imported',
    text: 'Trigger instances imported.',
    async act() {
      const instance = {
        id: '5a1f0c2e4b0a1d2c3e4f5072',
        trigger: 'shop.order',
        occurrence_time: '2026-01-31T12:00:00Z',
      }
      await change('POST /v1/triggerinstances/import', {}, { trigger_instances: [instance] })
      return about({ _count: 1 })
    },
  },
  {
    event: 'rule_enforcement.imported',
    text: 'Rule enforcements imported.',
    async act() {
      const enforcement = {
        id: '5a1f0c2e4b0a1d2c3e4f5073',
        trigger_instance_id: '5a1f0c2e4b0a1d2c3e4f5072',
        rule: { ref: 'shop.on_order' },
        enforced_at: '2026-01-31T12:00:00Z',
      }
      await change('POST /v1/ruleenforcements/import', {}, { rule_enforcements: [enforcement] })
      return about({ _count: 1 })
    },
  },
  {
    event: 'trace.imported',
    text: 'Traces imported.',
    async act() {
      const trace = { id: '5a1f0c2e4b0a1d2c3e4f5071', trace_tag: 'a', start_timestamp: '2026-01-31T12:00:00Z' }
      await change('POST /v1/traces/import', {}, { traces: [trace] })
      return about({ _count: 1 })
    },
  },
  {
    event: 'sensor.updated',
    text: 'Sensor updated. Sensor.id=<id>',
    async act() {
      write('packs/mine/sensors/one.yaml', 'class_name: One\nentry_point: one.py\nenabled: false\n')
      write('packs/mine/sensors/one.py', '')
      await change('POST /v1/packs/register', {}, { packs: ['mine'], types: ['sensors'] })
      await change('PUT /v1/sensortypes/{ref_or_id}', { ref_or_id: 'mine.One' }, { enabled: false })
      return about({ _sensor: 'mine.One' })
    },
  },

  // Packs bring aliases and sensors along.
  {
    event: 'pack.configured',
    text: 'Configuration of pack "mine" changed.',
    async act() {
      await change('PUT /v1/configs/{pack}', { pack: 'mine' }, { secret: 'canary' })
      return about({ _pack: 'mine' })
    },
  },
  {
    event: 'pack.registered',
    text: 'Packs registered.',
    async act() {
      await change('POST /v1/packs/register', {}, { packs: ['mine'], types: ['all'] })
      return about({ _packs: ['mine'], _problems: 0 })
    },
  },
  {
    event: 'pack.changed',
    text: 'Pack "mine" has changed on disk and is registered.',
    act() {
      write('packs/mine/aliases/new.yaml', 'name: new\naction_ref: mine.show\nformats: [show]\n')
      return Promise.resolve({ _pack: 'mine', _registered: expect.objectContaining({ aliases: 1 }) as unknown })
    },
  },
  {
    event: 'pack.installed',
    text: 'Pack "some" installed.',
    async act() {
      const body = { packs: [join(folder.path, 'elsewhere', 'some')] }
      const { execution_id: id } = (await change<{ execution_id: string }>('POST /v1/packs/install', {}, body)).body
      expect(await statusOf(id)).toMatchObject({ status: 'succeeded' })
      return { _pack: 'some', _version: '1.0.0', _execution_id: id }
    },
  },
  {
    event: 'pack.removed',
    text: 'Pack "some" removed.',
    async act() {
      const body = { packs: ['some'] }
      const { execution_id: id } = (await change<{ execution_id: string }>('POST /v1/packs/uninstall', {}, body)).body
      return { _pack: 'some', _execution_id: id }
    },
  },

  {
    event: 'user.created',
    text: 'User "by socket" created',
    async act() {
      const path = join(folder.path, 'svc.sock')
      expect((await askBySocket(path, 'POST', '/v1/users', { name: 'by socket' })).status).toBe(201)
      return { _user: 'svc', _remote_address: 'control-socket', _name: 'by socket' }
    },
  },
]

/** Operations whose lines are those of what they bring about, and those that change nothing. */
const silent = [
  'POST /v1/webhooks/{hook}',
  'POST /v1/rules/test',
  'POST /v1/timers/preview',
  'POST /v1/workflows/inspect',
  'POST /v1/workflows/graph',
  'POST /v1/actionalias/match',
  'POST /v1/aliasexecution',
  'POST /v1/aliasexecution/match_and_execute',
  'POST /v1/packs/index/search',
  'POST /auth/v1/sso/callback',
]

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder.path, path)), { recursive: true })
  writeFileSync(join(folder.path, path), text)
}

beforeAll(async () => {
  for (const [path, text] of Object.entries(packFiles)) write(path, text)
  server = await createTestApp({
    basePath: folder.path,
    settings: {
      'auth.enable': 'True',
      'rbac.enable': 'True',
      'rbac.backend': 'default',
      'log.level': 'CRITICAL',
      'content.watch': 'True',
    },
  })
  password = firstPassword(folder.path)
  admin = await signIn(server, 'admin', password)
  await change('POST /v1/users', {}, { name: 'looker', password: 'a long enough password' })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

describe('10.3 audit events', () => {
  it.each(rows)('10.3 $event: $text', async ({ text, event, act }) => {
    const fields = await act()
    const begins = new RegExp(`^${text.split('<id>').map(escaped).join('[0-9a-f]{24}')}`)
    const fitting: Fields = { ...fields, _event: event, short_message: expect.stringMatching(begins) as unknown }
    await waitFor(`${event} ${JSON.stringify(fields)}`, () => matches(readRecords(), fitting))
  })

  it('10.3 whatever the API can change is among them', async () => {
    const published = await changingOperations()
    expect(published.filter((operation) => !used.has(operation) && !silent.includes(operation))).toEqual([])
    expect([...used].filter((operation) => !published.includes(operation))).toEqual([])
  })

  it('10.3 no secret is in them', () => {
    const text = readFileSync(auditFile, 'utf8')
    for (const secret of ['canary', password, ids['apiKeyValue'], ids['tokenValue']]) {
      expect(text).not.toContain(secret)
    }
  })
})

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

function matches(records: AuditRecord[], fields: Fields): boolean {
  return records.some((record) => {
    try {
      expect(record).toMatchObject(fields)
      return true
    } catch {
      return false
    }
  })
}
