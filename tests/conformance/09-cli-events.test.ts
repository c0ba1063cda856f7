/** Contract 09, 9.3, and 05, 5.12: rules, triggers and what has happened on the command line, against a real server. */
import { createHmac } from 'node:crypto'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { cell, header, missing, names, jsonOf, rows, runCli, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { executable, type TestApp } from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { idPattern, timestampPattern, unknownId } from './support.ts'

const folder = makeFolder()
let server: TestApp

beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const env = (): Record<string, string> => ({ HOME: folder.path, SVC_API_URL: `${server.urls.api}/v1` })
const svc = (...args: string[]): Promise<CliExit> => runCli(args, env())

const json = <T>(...args: string[]): Promise<T> => jsonOf<T>(svc, args)

const { write } = folder

interface RuleAnswer {
  id: string
  ref: string
  description: string
  enabled: boolean
  trigger: { ref: string; type: string; parameters: object }
  criteria: object
  action: { ref: string; parameters: Record<string, unknown> }
}

interface InstanceAnswer {
  id: string
  trigger: string
  status: string
  occurrence_time: string
  payload: Record<string, unknown>
}

interface EnforcementAnswer {
  id: string
  trigger_instance_id: string
  execution_id?: string
  failure_reason?: string
  rule: { ref: string; id: string }
  enforced_at: string
}

/** Makes a rule that listens to a trigger type. @returns its record */
async function makeRule(name: string, more: object): Promise<RuleAnswer> {
  const { status, body } = await server.call<RuleAnswer>('POST', '/v1/rules', {
    name,
    enabled: true,
    action: { ref: 'core.noop' },
    ...more,
  })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body
}

async function makeType(name: string): Promise<string> {
  const { status, body } = await server.call<{ ref: string }>('POST', '/v1/triggertypes', { name, pack: 'shop' })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.ref
}

/** Lets something happen. @returns the trigger instance, once rules have looked at it */
async function dispatch(trigger: string, payload: object): Promise<InstanceAnswer> {
  const { status, headers, text } = await server.call('POST', '/v1/webhooks/svc', { trigger, payload })
  const id = headers.get('svc-trigger-instance-id')
  if (status !== 202 || id === null) throw new Error(text)
  return waitFor('the rules', async () => {
    const { body } = await server.call<InstanceAnswer>('GET', `/v1/triggerinstances/${id}`)
    return body.status === 'processed' && body
  })
}

describe('09.3 trigger', () => {
  const definition = { name: 'deployed', pack: 'shop', description: 'A release is out.', payload_schema: {} }

  it('09.3 create, list, get, update and delete are about trigger types', async () => {
    const created = await svc('trigger', 'create', write('deployed.json', definition))
    expect([created.code, created.stderr]).toEqual([0, ''])
    expect(names(created.stdout).slice(0, 7)).toEqual(['Property', 'id', 'uid', 'ref', 'pack', 'name', 'description'])
    expect(created.stdout).toMatch(cell('trigger_type:shop:deployed'))

    const list = await svc('trigger', 'list', '-p', 'shop')
    expect(header(list.stdout)).toEqual(['ref', 'pack', 'description'])
    expect(list.stdout).toMatch(cell('shop.deployed'))
    expect(list.stdout).not.toMatch(/\| core /)
    expect((await json<{ ref: string }[]>('trigger', 'list', '-n', '-1')).map(({ ref }) => ref)).toContain(
      'core.svc.webhook',
    )

    const get = await json<object>('trigger', 'get', 'shop.deployed')
    expect(get).toMatchObject({ ...definition, ref: 'shop.deployed', id: expect.stringMatching(idPattern) })
    const some = await svc('trigger', 'get', 'shop.deployed', 'shop.nope', 'core.svc.webhook', '-a', 'ref')
    expect(some.code).toBe(2)
    expect(some.stdout).toMatch(/shop\.deployed[^]*\nTrigger "shop\.nope" is not found\.\n\n[^]*core\.svc\.webhook/)

    const changed = write('changed.yaml', 'name: deployed\npack: shop\ndescription: It is out.\n')
    expect((await svc('trigger', 'update', 'shop.deployed', changed)).stdout).toMatch(cell('It is out.'))
    expect(await svc('trigger', 'update', 'shop.nope', changed)).toEqual(missing('Trigger', 'shop.nope'))

    const remove = await svc('trigger', 'delete', 'shop.deployed', 'shop.nope')
    expect(remove).toEqual({
      code: 2,
      stdout: 'Trigger "shop.deployed" is deleted.\nTrigger "shop.nope" is not found.\n\n',
      stderr: '',
    })
    expect(await svc('trigger', 'get', 'shop.deployed')).toEqual(missing('Trigger', 'shop.deployed'))
  })

  it('09.1 what the server refuses: 2 when something is made, else 1', async () => {
    const core = write('core.yaml', 'name: mine\npack: core\n')
    const created = await svc('trigger', 'create', core)
    expect([created.code, created.stdout]).toEqual([2, expect.stringMatching(/^ERROR: 400 .*\nMESSAGE: /)])
    const deleted = await svc('trigger', 'delete', 'core.svc.webhook')
    expect([deleted.code, deleted.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 400 /)])
    await makeType('twice')
    const again = await svc('trigger', 'create', write('twice.yaml', 'name: twice\npack: shop\n'))
    expect([again.code, again.stdout]).toEqual([2, expect.stringMatching(/^ERROR: 409 /)])
  })

  it('09.3 getspecs lists the triggers of a type', async () => {
    const { trigger } = await makeRule('specs', { trigger: { type: 'core.svc.webhook', parameters: { url: 'specs' } } })
    const { code, stdout } = await svc('trigger', 'getspecs', 'core.svc.webhook')
    expect([code, header(stdout)]).toEqual([0, ['ref', 'type', 'parameters', 'description']])
    expect(stdout).toMatch(cell(trigger.ref))
    const specs = await json<{ ref: string; type: string; parameters: object }[]>(
      'trigger',
      'getspecs',
      'core.svc.webhook',
    )
    expect(specs.find(({ ref }) => ref === trigger.ref)?.parameters).toEqual({ url: 'specs' })
    expect([...new Set(specs.map(({ type }) => type))]).toEqual(['core.svc.webhook'])
    expect(await svc('trigger', 'getspecs', 'core.nope')).toEqual(missing('Trigger', 'core.nope'))
  })
})

describe('09.3 rule', () => {
  const text = `name: on_order
pack: shop
description: Counts orders.
enabled: true
trigger:
  type: core.svc.webhook
  parameters: {url: cli-orders}
criteria:
  trigger.body.kind: {type: equals, pattern: order}
action:
  ref: core.local
  parameters: {cmd: "echo {{ trigger.body.id }}"}
`

  it('09.3 create takes a file, and says when the rule is disabled', async () => {
    const created = await svc('rule', 'create', write('on_order.yaml', text))
    expect([created.code, created.stderr]).toEqual([0, ''])
    expect(names(created.stdout).slice(0, 8)).toEqual([
      'Property',
      'id',
      'uid',
      'ref',
      'pack',
      'name',
      'description',
      'enabled',
    ])
    expect(created.stdout).toMatch(cell('rule:shop:on_order'))

    const quiet = write('quiet.json', {
      name: 'quiet',
      trigger: { type: 'core.svc.generic.actiontrigger' },
      action: { ref: 'core.noop' },
    })
    const disabled = await svc('rule', 'create', quiet, '-a', 'ref', 'enabled')
    expect(disabled.stderr).toBe('Note: The rule is disabled. To enable it: svc rule enable default.quiet\n')
    expect([disabled.code, names(disabled.stdout)]).toEqual([0, ['Property', 'ref', 'enabled']])
    const replaced = await svc('rule', 'update', 'default.quiet', quiet, '-a', 'ref')
    expect([replaced.code, replaced.stderr]).toEqual([0, disabled.stderr])
    const again = await svc('rule', 'create', quiet, '-j')
    expect([again.code, again.stderr]).toEqual([2, ''])
    expect(again.stdout).toMatch(/^ERROR: 409 Client Error: Conflict\nMESSAGE: .*default.*quiet/)
  })

  it('09.1 a file that cannot be used: named with the line, 2, and nothing is made', async () => {
    const before = await json<unknown[]>('rule', 'list', '-n', '-1')
    for (const [path, message] of [
      [join(folder.path, 'none.yaml'), /^ERROR: The file .*none\.yaml does not exist\n$/],
      [write('broken.yaml', 'name: x\ntrigger: {type: [\n'), /^ERROR: .*broken\.yaml:\d: /],
      [write('list.json', '[]'), /^ERROR: .*list\.json: the file must contain a mapping, not a list\n$/],
      [write('rule.txt', text), /^ERROR: .*must end with \.json, \.yaml or \.yml\n$/],
    ] as const) {
      for (const words of [
        ['rule', 'create', path],
        ['rule', 'update', 'shop.on_order', path],
        ['rule', 'test', '--rule', path, '--trigger-instance-id', unknownId],
      ]) {
        const { code, stdout, stderr } = await svc(...words)
        expect([words, code, stdout, stderr]).toEqual([words, 2, expect.stringMatching(message), ''])
      }
    }
    for (const [content, message] of [
      ['name: x\naction: {ref: core.noop}\n', /trigger/],
      ['name: x\naction: {ref: core.noop}\ntrigger: {type: shop.nope}\n', /shop\.nope/],
      [`${text.replace('on_order', 'x').replace('type: equals', 'type: same')}`, /trigger\.body\.kind.*same/],
    ] as const) {
      const { code, stdout } = await svc('rule', 'create', write('wrong.yaml', content))
      expect([code, stdout]).toEqual([2, expect.stringMatching(/^ERROR: 400 /)])
      expect(stdout).toMatch(message)
    }
    expect(await json('rule', 'list', '-n', '-1')).toEqual(before)
  })

  it('09.3 list: columns, filters, --iftt', async () => {
    const list = await svc('rule', 'list', '-n', '-1')
    expect(header(list.stdout)).toEqual(['ref', 'pack', 'description', 'enabled'])
    const refs = async (...args: string[]): Promise<string[]> =>
      (await json<RuleAnswer[]>('rule', 'list', '-n', '-1', ...args)).map(({ ref }) => ref)
    expect(await refs('-p', 'shop')).toEqual(['shop.on_order'])
    expect(await refs('-c', 'core.local')).toEqual(['shop.on_order'])
    expect(await refs('--action', 'core.nope')).toEqual([])
    expect(await refs('-g', 'core.svc.generic.actiontrigger')).toEqual(['default.quiet'])
    expect(await refs('--disabled')).toEqual(['default.quiet'])
    const enabled = await refs('--enabled')
    expect(enabled).toContain('shop.on_order')
    expect(enabled).not.toContain('default.quiet')
    expect((await svc('rule', 'list', '--enabled', '--disabled')).code).toBe(2)

    const { stdout } = await svc('rule', 'list', '--iftt', '-p', 'shop')
    const { trigger } = await json<RuleAnswer>('rule', 'get', 'shop.on_order')
    expect(header(stdout)).toEqual(['ref', 'trigger.ref', 'action.ref', 'enabled'])
    expect(stdout).toMatch(new RegExp(`\\| shop\\.on_order +\\| ${trigger.ref} +\\| core\\.local +\\| true +\\|`))
    expect((await svc('rule', 'list', '-p', 'nope')).stdout).toBe('No matching items found\n')

    const one = await svc('rule', 'list', '-n', '1')
    expect(one.stderr).toContain('Note: Only one Rule is displayed. Use -n/--last flag for more results.')
  })

  it('09.3 update replaces, enable and disable change nothing else', async () => {
    const before = await json<RuleAnswer>('rule', 'get', 'shop.on_order')
    const changed = text.replace('description: Counts orders.\n', '').replace('equals', 'iequals')
    const updated = await json<RuleAnswer>('rule', 'update', 'shop.on_order', write('changed.yaml', changed))
    expect(updated).toMatchObject({ id: before.id, description: '', enabled: true })
    expect(updated.criteria).toEqual({ 'trigger.body.kind': { type: 'iequals', pattern: 'order' } })

    const disabled = await json<RuleAnswer>('rule', 'disable', 'shop.on_order')
    expect(disabled).toEqual({ ...updated, enabled: false })
    const byId = await svc('rule', 'enable', before.id)
    expect([byId.code, byId.stdout]).toEqual([0, expect.stringMatching(/\| enabled +\| true +\|/)])
    expect(await json('rule', 'get', 'shop.on_order')).toEqual(updated)

    const refused = await svc('rule', 'update', 'shop.on_order', write('refused.yaml', text.replace('equals', 'same')))
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 400 /)])
  })

  it('09.3 enable and disable keep secrets that nobody is shown', async () => {
    const action = { ref: 'core.local_sudo', parameters: { cmd: 'true', sudo_password: 'canary-of-rule' } }
    const signature = { scheme: 'github', secret: 'canary-of-hook' }
    const parameters = { url: 'cli-secretive', signature }
    const criteria = { 'trigger.body.a': { type: 'eq', pattern: 'nothing shall run' } }
    await makeRule('secretive', { trigger: { type: 'core.svc.webhook', parameters }, criteria, action })
    const shown = await svc('rule', 'disable', 'default.secretive')
    expect(shown.stdout).toMatch(/"sudo_password": "\*{8}"/)
    expect((await svc('rule', 'enable', 'default.secretive')).code).toBe(0)
    const { body } = await server.call<RuleAnswer>('GET', '/v1/rules/default.secretive?show_secrets=true')
    expect(body.action.parameters).toEqual(action.parameters)
    const sent = '{"a": 1}'
    const digest = createHmac('sha256', signature.secret).update(sent).digest('hex')
    const deliver = (value: string) =>
      server.call('POST', '/v1/webhooks/cli-secretive', sent, { 'X-Hub-Signature-256': `sha256=${value}` })
    expect((await deliver(digest)).status).toBe(202)
    expect((await deliver(digest.replace(/^./, (digit) => (digit === '0' ? '1' : '0')))).status).toBe(401)
  })

  it('00.15 --debug masks what the action and the trigger type declare secret', async () => {
    const type = { name: 'guarded', pack: 'shop', parameters_schema: { properties: { pin: { secret: true } } } }
    expect((await server.call('POST', '/v1/triggertypes', type)).status).toBe(201)
    const file = write('guarded.json', {
      name: 'guarded',
      trigger: { type: 'shop.guarded', parameters: { pin: 'canary-of-trigger' } },
      action: { ref: 'core.local_sudo', parameters: { cmd: 'true', sudo_password: 'canary-of-action' } },
    })
    for (const words of [
      ['create', file],
      ['update', 'default.guarded', file],
      ['get', 'default.guarded', '-j'],
      ['enable', 'default.guarded'],
      ['test', '--rule', file, '--trigger-instance', write('none.json', { trigger: 'shop.guarded', payload: {} })],
    ]) {
      const { stdout, stderr } = await svc('--debug', 'rule', ...words)
      expect([words, `${stdout}${stderr}`]).toEqual([words, expect.not.stringContaining('canary')])
      expect(stderr).toMatch(/^curl -X (?:GET|POST|PUT) /m)
    }
  })

  it('09.1 what does not exist: 2, whatever is asked of it', async () => {
    const file = write('on_order.yaml', text)
    for (const words of [['get'], ['enable'], ['disable'], ['delete'], ['update', file]]) {
      const [command = '', ...more] = words
      for (const ref of ['shop.nope', unknownId]) {
        expect([words, await svc('rule', command, ref, ...more)]).toEqual([words, missing('Rule', ref)])
      }
    }
    const both = await svc('rule', 'delete', 'shop.nope', 'shop.on_order')
    expect(both).toEqual({
      code: 2,
      stdout: 'Rule "shop.nope" is not found.\n\nRule "shop.on_order" is deleted.\n',
      stderr: '',
    })
    expect(await svc('rule', 'get', 'shop.on_order')).toEqual(missing('Rule', 'shop.on_order'))
  })
})

describe('09.3 trigger-instance', () => {
  let type: string
  let instances: InstanceAnswer[]
  let matching: RuleAnswer

  beforeAll(async () => {
    type = await makeType('explained')
    const trigger = { type }
    matching = await makeRule('matching', { trigger, criteria: { 'trigger.n': { type: 'gt', pattern: 1 } } })
    await makeRule('sleeping', { trigger, enabled: false })
    await makeRule('failing', {
      trigger,
      action: { ref: 'shop.nope' },
      criteria: { 'trigger.n': { type: 'eq', pattern: 2 } },
    })
    instances = []
    for (const payload of [{ n: 1 }, { n: 2 }, { n: 'three' }]) instances.push(await dispatch(type, payload))
  })

  it('09.3 list: columns, the newest last, filters', async () => {
    const list = await svc('trigger-instance', 'list', '--trigger', type)
    expect(header(list.stdout)).toEqual(['id', 'trigger', 'occurrence_time', 'status'])
    expect(list.stdout).toMatch(/\| \w{3}, \d\d \w{3} \d{4} [\d:]{8} UTC +\| processed +\|/)
    const ids = async (...args: string[]): Promise<string[]> =>
      (await json<InstanceAnswer[]>('trigger-instance', 'list', '--trigger', type, ...args)).map(({ id }) => id)
    const all = instances.map(({ id }) => id)
    expect(await ids()).toEqual(all)
    expect(await ids('-n', '2')).toEqual(all.slice(1))
    expect(await ids('--trigger-type', type)).toEqual(all)
    expect(await ids('--trigger-type', 'core.svc.webhook')).toEqual([])
    expect(await ids('--status', 'processed')).toEqual(all)
    expect(await ids('--status', 'processing_failed')).toEqual([])
    const [first = '', second = '', third = ''] = instances.map((instance) => instance.occurrence_time)
    expect(await ids('-tg', first, '-tl', third)).toEqual([all[1]])
    expect(await ids(`-tg=${second}`)).toEqual([all[2]])
    expect(await ids('--timestamp-lt', second)).toEqual([all[0]])
    const [last] = await json<object[]>(
      'trigger-instance',
      'list',
      '--trigger',
      type,
      '-n',
      '1',
      '-a',
      'payload.n',
      'status',
    )
    expect(last).toEqual({ payload: { n: 'three' }, status: 'processed' })
    const wrong = await svc('trigger-instance', 'list', '-tg', 'yesterday')
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 400 .*\n.*yesterday/)])
  })

  it('09.3 get shows the payload; an unknown one is not found, 2', async () => {
    const [first] = instances
    const { code, stdout } = await svc('trigger-instance', 'get', first?.id ?? '')
    expect([code, names(stdout).slice(1, 6)]).toEqual([
      0,
      ['id', 'trigger', 'trigger_type', 'occurrence_time', 'status'],
    ])
    expect(await json('trigger-instance', 'get', first?.id ?? '')).toEqual(first)
    for (const command of ['get', 're-emit', 'explain']) {
      for (const id of [unknownId, 'no-id']) {
        expect(await svc('trigger-instance', command, id)).toEqual(missing('Trigger Instance', id))
      }
    }
  })

  it('09.3 explain tells the verdict of each rule, with the value it saw', async () => {
    const [one, two, three] = instances.map(({ id }) => id)
    const low = await svc('trigger-instance', 'explain', one ?? '')
    expect([low.code, low.stderr]).toEqual([0, ''])
    expect(low.stdout).toMatch(new RegExp(`^${one} \\(${type}, \\w{3}, .* UTC\\) is processed\\.\n.+\n\n`))
    expect(low.stdout).toContain(
      'default.matching does not match:\n  key: trigger.n\n  type: gt\n  pattern: 1\n  value: 1\n',
    )
    expect(low.stdout).toMatch(/\ndefault\.sleeping is disabled\b/)

    const high = await svc('trigger-instance', 'explain', two ?? '')
    const { body: enforcements } = await server.call<EnforcementAnswer[]>(
      'GET',
      `/v1/ruleenforcements?trigger_instance=${two}&rule_id=${matching.id}`,
    )
    const [enforcement] = enforcements
    expect(high.stdout).toContain(
      `\ndefault.matching matches:\n  enforcement: ${enforcement?.id}\n  execution: ${enforcement?.execution_id}\n`,
    )
    expect(high.stdout).toMatch(/\ndefault\.failing matches:\n {2}enforcement: .*\n {2}failure_reason: .*shop\.nope/)

    const odd = await svc('trigger-instance', 'explain', three ?? '')
    expect(odd.stdout).toMatch(
      /\ndefault\.matching does not match: a value cannot be compared:\n(?: {2}.*\n)* {2}value: three\n {2}reason: ./,
    )
  })

  it('09.3 explain -j prints what the server says, for several ids', async () => {
    const [one, two] = instances
    const { body } = await server.call('GET', `/v1/triggerinstances/${two?.id}/explain`)
    expect(await json('trigger-instance', 'explain', two?.id ?? '')).toEqual(body)
    const some = await svc('trigger-instance', 'explain', one?.id ?? '', unknownId, two?.id ?? '')
    expect([some.code, some.stdout.split(' is processed.\n')]).toEqual([
      2,
      [expect.anything(), expect.anything(), expect.anything()],
    ])
    expect(some.stdout).toContain(missing('Trigger Instance', unknownId).stdout)
  })

  it('09.3 re-emit lets it happen again, and so does svc-trigger-refire', async () => {
    const [first] = instances
    const id = first?.id ?? ''
    const before = (await json<unknown[]>('trigger-instance', 'list', '--trigger', type)).length
    const message = `Trigger instance ${id} successfully re-sent.\n`
    const note = expect.stringMatching(/^Note: New trigger instance: [0-9a-f]{24}\n$/) as string
    expect(await svc('trigger-instance', 're-emit', id)).toEqual({ code: 0, stdout: message, stderr: note })
    expect(await json('trigger-instance', 're-emit', id)).toMatchObject({
      message: message.trim(),
      payload: { n: 1, __context: { original_id: id } },
    })

    const program = join(folder.path, 'svc-trigger-refire')
    symlinkSync(executable, program)
    const refire = (...args: string[]): Promise<CliExit> => runCli(args, env(), { program })
    expect(await refire('-t', id)).toEqual({ code: 0, stdout: 'Trigger re-fired.\n', stderr: note })
    expect(await refire('--trigger-instance-id', unknownId)).toEqual(missing('Trigger Instance', unknownId))
    expect(await refire()).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: .*-t, --trigger/),
    })

    const after = await json<InstanceAnswer[]>('trigger-instance', 'list', '--trigger', type)
    expect(after.slice(before).map(({ payload }) => payload)).toEqual(
      Array.from({ length: 3 }, () => ({ n: 1, __context: { original_id: id } })),
    )
  })

  it('09.3 rule-enforcement list: columns, the newest last, filters', async () => {
    const list = await svc('rule-enforcement', 'list', '--rule', matching.ref)
    expect(header(list.stdout)).toEqual(['id', 'rule.ref', 'trigger_instance_id', 'execution_id', 'enforced_at'])
    const find = (...args: string[]): Promise<EnforcementAnswer[]> =>
      json('rule-enforcement', 'list', '-n', '-1', ...args)
    const [, two, three] = instances.map(({ id }) => id)
    const ofTwo = await find('--trigger-instance', two ?? '')
    expect(ofTwo.map(({ rule }) => rule.ref).toSorted()).toEqual(['default.failing', 'default.matching'])
    const byRef = await find('--rule', matching.ref)
    expect(byRef.map((each) => each.trigger_instance_id)).toEqual([two, three])
    expect(await find('--rule', matching.id)).toEqual(byRef)
    const [first, second] = byRef
    expect(await find('--execution', first?.execution_id ?? '')).toEqual([first])
    expect(await find('--rule', matching.ref, '-tg', first?.enforced_at ?? '')).toEqual([second])
    expect(await find('--rule', matching.ref, '-tl', second?.enforced_at ?? '')).toEqual([first])
    expect(await find('--rule', 'shop.nope')).toEqual([])
    expect((await svc('rule-enforcement', 'list', '--rule', matching.ref, '-n', '1', '-a', 'id')).stdout).toMatch(
      cell(second?.id ?? ''),
    )
  })

  it('09.3 rule-enforcement get: the columns of the list, and why it failed', async () => {
    const [, two] = instances
    const enforcements = await json<EnforcementAnswer[]>(
      'rule-enforcement',
      'list',
      '--trigger-instance',
      two?.id ?? '',
    )
    const failed = enforcements.find((each) => each.failure_reason !== undefined)
    const { code, stdout } = await svc('rule-enforcement', 'get', failed?.id ?? '')
    expect([code, names(stdout)]).toEqual([
      0,
      ['Property', 'id', 'rule.ref', 'trigger_instance_id', 'execution_id', 'failure_reason', 'enforced_at'],
    ])
    expect(stdout).toMatch(/\| failure_reason +\| .*shop\.nope/)
    expect(await json('rule-enforcement', 'get', failed?.id ?? '')).toMatchObject({
      id: failed?.id,
      status: 'failed',
      enforced_at: expect.stringMatching(timestampPattern),
    })
    expect(names((await svc('rule-enforcement', 'get', failed?.id ?? '', '-a', 'all')).stdout)).toContain('status')
    expect(await svc('rule-enforcement', 'get', unknownId)).toEqual(missing('Rule Enforcement', unknownId))
  })
})

describe('09.3 webhook', () => {
  it('09.3 list: url, rules, scheme, description; get: url, type, description', async () => {
    const parameters = { url: '/cli/inner/', signature: { scheme: 'github', secret: 'canary-of-webhook' } }
    await makeRule('hooked', { trigger: { type: 'core.svc.webhook', parameters } })
    const list = await svc('webhook', 'list')
    expect([list.code, header(list.stdout)]).toEqual([0, ['url', 'rule', 'scheme', 'description']])
    expect(list.stdout).toMatch(/\| \/cli\/inner\/ +\| default\.hooked +\| github +\|/)
    const whole = await waitFor('the hook', async () =>
      (await json<{ parameters: { url: string } }[]>('webhook', 'list')).find(
        (each) => each.parameters.url === parameters.url,
      ),
    )
    expect(whole).not.toHaveProperty('url')
    expect(await json('webhook', 'list', '-a', 'url')).toContainEqual({ url: parameters.url })

    const get = await svc('webhook', 'get', 'cli/inner')
    expect([get.code, names(get.stdout).slice(0, 4)]).toEqual([0, ['Property', 'url', 'type', 'description']])
    for (const text of [get.stdout, list.stdout, JSON.stringify(whole)]) expect(text).not.toContain('canary-of-webhook')
    expect(await json('webhook', 'get', 'cli/inner')).toEqual(whole)
    expect(await svc('webhook', 'get', 'nope')).toEqual(missing('Webhook', 'nope'))
  })

  it('09.2 -n holds for lists that have no pages', async () => {
    await makeRule('hooked_too', { trigger: { type: 'core.svc.webhook', parameters: { url: 'cli-more' } } })
    expect((await svc('webhook', 'list')).stdout).toMatch(/\| cli-more +\| default\.hooked_too +\| none +\|/)
    const { stdout, stderr } = await svc('webhook', 'list', '-n', '1')
    expect(rows(stdout)).toHaveLength(1)
    expect(stderr).toContain('Note: Only one Webhook is displayed.')
  })
})

describe('09.3 timer', () => {
  it('09.3 list by type, and get', async () => {
    const interval = { type: 'core.svc.IntervalTimer', parameters: { unit: 'days', delta: 3 } }
    const { trigger } = await makeRule('daily', { trigger: interval })
    const date = { date: '2100-01-01 00:00:00', timezone: 'UTC' }
    await makeRule('once', { trigger: { type: 'core.svc.DateTimer', parameters: date } })
    await waitFor('the timers to know when they are due', async () =>
      (await json<object[]>('timer', 'list')).every((timer) => 'next_timestamp' in timer),
    )
    const list = await svc('timer', 'list')
    expect([list.code, header(list.stdout)]).toEqual([0, ['id', 'type', 'parameters', 'next', 'previous', 'rule']])
    expect(list.stdout).toMatch(/\| Fri, 01 Jan 2100 00:00:00 UTC \| +\| default\.once +\|/)
    // One trigger, several rules.
    await makeRule('daily_too', { trigger: interval })
    expect(await json('timer', 'get', trigger.ref)).toMatchObject({ rules: ['default.daily', 'default.daily_too'] })
    expect(await json('timer', 'get', trigger.ref, '-a', 'rule')).toEqual({ rule: 'default.daily\ndefault.daily_too' })
    const types = async (...args: string[]): Promise<string[]> =>
      (await json<{ type: string }[]>('timer', 'list', ...args)).map(({ type }) => type)
    expect((await types()).toSorted()).toEqual(['core.svc.DateTimer', 'core.svc.IntervalTimer'])
    expect(await types('-ty', 'core.svc.IntervalTimer')).toEqual(['core.svc.IntervalTimer'])
    expect(await types('--timer-type', 'core.svc.CronTimer')).toEqual([])
    const wrong = await svc('timer', 'list', '-ty', 'core.svc.webhook')
    expect([wrong.code, wrong.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 400 /)])
    expect(await json('timer', 'get', trigger.ref)).toMatchObject({ ref: trigger.ref, parameters: interval.parameters })
    expect(await svc('timer', 'get', unknownId)).toEqual(missing('Timer', unknownId))
  })
})

describe('09.3 timer next', () => {
  it('09.3 shows runs in the zone of the viewer and in that of the timer', async () => {
    const parameters = { cron: '30 9 * * *', timezone: 'Asia/Kolkata', start: '2099-01-01' }
    const { ref, trigger } = await makeRule('nightly', { trigger: { type: 'core.svc.CronTimer', parameters } })
    await waitFor('the row', async () => 'next_run' in (await json<object>('timer', 'get', trigger.ref)))
    const config = folder.write('zone.conf', '[cli]\ntimezone = Europe/Berlin\n')
    const here = (...args: string[]): Promise<CliExit> => runCli([...args, '--config-file', config], env())
    const list = await here('timer', 'list', '-ty', 'core.svc.CronTimer')
    expect(list.stdout).toContain('Thu, 01 Jan 2099 05:00:00 GMT+1')
    expect(list.stdout).toContain('Thu, 01 Jan 2099 09:30:00 GMT+5:30')
    for (const of of [trigger.ref, ref]) {
      const next = await here('timer', 'next', of, '-n', '2')
      expect([next.code, header(next.stdout)]).toEqual([0, ['Europe/Berlin', 'Asia/Kolkata']])
      expect(rows(next.stdout)).toEqual([
        ['Thu, 01 Jan 2099 05:00:00 GMT+1', 'Thu, 01 Jan 2099 09:30:00 GMT+5:30'],
        ['Fri, 02 Jan 2099 05:00:00 GMT+1', 'Fri, 02 Jan 2099 09:30:00 GMT+5:30'],
      ])
    }
    const expression = await here('timer', 'next', '@hourly', '--timezone', 'Europe/Berlin')
    expect([header(expression.stdout), rows(expression.stdout).length]).toEqual([['Europe/Berlin'], 5])
    expect((await svc('timer', 'next', '0 0 30 feb *')).stdout).toMatch(/^It does not fire: no future time matches/)
    expect(await svc('timer', 'next', ref, '--timezone', 'UTC')).toMatchObject({ code: 2 })
    await server.call('DELETE', `/v1/rules/${ref}`)
  })
})

describe('05.12 rule test', () => {
  const rule = {
    name: 'tried',
    pack: 'shop',
    trigger: { type: 'shop.tried' },
    criteria: { 'trigger.kind': { type: 'equals', pattern: 'order' }, 'trigger.n': { type: 'gt', pattern: 3 } },
    action: { ref: 'core.local', parameters: { cmd: 'echo {{ trigger.n }}' } },
  }
  const instance = (payload: object, trigger = 'shop.tried'): string =>
    write(`instance-${JSON.stringify(payload).length}.json`, { trigger, payload })
  let file: string

  beforeAll(async () => {
    await makeType('tried')
    file = write('tried.json', rule)
  })

  it('05.12 a match: the parameters of the action, === RULE MATCHES ===, 0; nothing is run or stored', async () => {
    const before = (await server.call('GET', '/v1/executions')).headers.get('x-total-count')
    const { code, stdout, stderr } = await svc(
      'rule',
      'test',
      '--rule',
      file,
      '--trigger-instance',
      instance({ kind: 'order', n: 4 }),
    )
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toBe('shop.tried matches\n\nParameters of the action:\n  cmd: echo 4\n\n=== RULE MATCHES ===\n')
    expect((await server.call('GET', '/v1/executions')).headers.get('x-total-count')).toBe(before)
    expect(await json('trigger-instance', 'list', '--trigger', 'shop.tried')).toEqual([])
    expect(await svc('rule', 'get', 'shop.tried')).toEqual(missing('Rule', 'shop.tried'))
  })

  it('05.12 no match: the criterion and the value, === RULE DOES NOT MATCH ===, 1', async () => {
    const words = ['rule', 'test', '--rule', file, '--trigger-instance', instance({ kind: 'order', n: 3 })]
    const { code, stdout, stderr } = await svc(...words)
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toBe(
      'shop.tried does not match:\n  key: trigger.n\n  type: gt\n  pattern: 3\n  value: 3\n\n=== RULE DOES NOT MATCH ===\n',
    )
    const machine = await svc(...words, '-j')
    expect([machine.code, JSON.parse(machine.stdout)]).toEqual([
      1,
      expect.objectContaining({ matches: false, verdict: expect.objectContaining({ verdict: 'not_matched' }) }),
    ])
  })

  it('05.12 a stored rule and a recorded instance, under its other name too', async () => {
    const stored = await makeRule('stored', { ...rule, name: 'stored', enabled: true })
    const { id } = await dispatch('shop.tried', { kind: 'order', n: 1 })
    const program = join(folder.path, 'svc-rule-tester')
    symlinkSync(executable, program)
    for (const name of [stored.ref, stored.id]) {
      const { code, stdout } = await runCli([`--rule-ref=${name}`, `--trigger-instance-id=${id}`], env(), { program })
      expect([code, stdout]).toEqual([1, expect.stringMatching(/^shop\.stored does not match:\n {2}key: trigger\.n\n/)])
    }
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { bin: Record<string, string> }
    for (const name of ['svc-rule-tester', 'svc-trigger-refire']) expect(manifest.bin[name]).toBe(manifest.bin['svc'])

    const test = (...args: string[]): Promise<CliExit> => svc('rule', 'test', ...args)
    expect(await test('--rule-ref', 'shop.nope', '--trigger-instance-id', id)).toEqual(missing('Rule', 'shop.nope'))
    expect(await test('--rule-ref', stored.ref, '--trigger-instance-id', unknownId)).toEqual(
      missing('Trigger Instance', unknownId),
    )
  })

  it('05.12 the trigger type of the rule must be that of the instance', async () => {
    const other = instance({ other: true }, 'core.svc.generic.actiontrigger')
    const { code, stdout } = await svc('rule', 'test', '--rule', file, '--trigger-instance', other)
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(
        /^shop\.tried does not match:\n {2}reason: .*shop\.tried.*core\.svc\.generic\.actiontrigger.*\n\n=== RULE DOES NOT MATCH ===\n$/,
      ),
    ])
  })

  it('05.12 a rule that matches, and would start nothing, is told why', async () => {
    const action = { ref: 'core.local', parameters: { frob: 1 } }
    const wrong = write('wrong.json', { ...rule, criteria: {}, action })
    const { code, stdout } = await svc('rule', 'test', '--rule', wrong, '--trigger-instance', instance({}))
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/\nThe rule would not start the action: .*frob.*\n\n=== RULE MATCHES ===\n$/),
    ])
  })

  it('09.1 one rule and one instance are needed, 2', async () => {
    const both = instance({ kind: 'order' })
    for (const [args, message] of [
      [[], /^ERROR: Give --rule or --rule-ref\.\n$/],
      [['--rule', file], /^ERROR: Give --trigger-instance or --trigger-instance-id\.\n$/],
      [
        ['--rule', file, '--rule-ref', 'a.b', '--trigger-instance', both],
        /^ERROR: Give only one of --rule or --rule-ref\.\n$/,
      ],
      [['--rule', file, '--trigger-instance', join(folder.path, 'none.yaml')], /none\.yaml does not exist\n$/],
    ] as const) {
      const { code, stdout } = await svc('rule', 'test', ...args)
      expect([args, code, stdout]).toEqual([args, 2, expect.stringMatching(message)])
    }
  })
})

describe('09.3 policy and policy-type', () => {
  it('09.3 from the making of a policy to its end', async () => {
    const definition = {
      name: 'one_at_a_time',
      resource_ref: 'shop.deploy',
      policy_type: 'action.concurrency',
      parameters: { threshold: 1 },
    }
    const made = await json<{ ref: string }>('policy', 'create', write('policy.json', definition))
    expect(made).toMatchObject({ ...definition, ref: 'default.one_at_a_time', enabled: true })
    const list = await svc('policy', 'list')
    expect([list.code, header(list.stdout)]).toEqual([0, ['ref', 'resource_ref', 'policy_type', 'enabled']])
    const refs = async (...args: string[]): Promise<string[]> =>
      (await json<{ ref: string }[]>('policy', 'list', ...args)).map(({ ref }) => ref)
    expect(await refs('-pt', 'action.concurrency', '-r', 'shop.deploy', '-p', 'default')).toEqual([made.ref])
    for (const args of [
      ['-pt', 'action.retry'],
      ['-r', 'shop.other'],
      ['-p', 'shop'],
    ]) {
      expect(await refs(...args)).toEqual([])
    }
    const changed = write('policy.json', { ...definition, enabled: false })
    expect((await svc('policy', 'update', made.ref, changed)).code).toBe(0)
    expect(await json('policy', 'get', made.ref)).toMatchObject({ ...made, enabled: false })
    const broken = await svc('policy', 'update', made.ref, write('broken.json', { ...definition, parameters: {} }))
    expect([broken.code, broken.stdout]).toEqual([1, expect.stringContaining('threshold')])
    expect((await svc('policy', 'delete', made.ref)).code).toBe(0)
    expect(await svc('policy', 'get', made.ref)).toEqual(missing('Policy', made.ref))
  })

  it('09.3 the types', async () => {
    const list = await svc('policy-type', 'list')
    expect([list.code, header(list.stdout)]).toEqual([0, ['id', 'resource_type', 'name', 'description']])
    expect(await json('policy-type', 'get', 'action.retry')).toMatchObject({ name: 'retry', enabled: true })
    expect(await svc('policy-type', 'get', 'action.none')).toEqual(missing('Policy type', 'action.none'))
  })
})

describe('09.3 webhook send', () => {
  const signature = { scheme: 'github', secret: 'hush' }
  /** Makes a webhook whose payload the action prints. */
  const listen = (url: string, more: object = {}, cmd = 'printf %s "$BODY"'): Promise<RuleAnswer> =>
    makeRule(`hears_${url}`, {
      trigger: { type: 'core.svc.webhook', parameters: { url, ...more } },
      action: { ref: 'core.local', parameters: { cmd, env: { BODY: '{{ trigger | to_json_string }}' } } },
    })
  interface Outcome {
    trace_id: string
    repetition?: boolean
    trigger_instances: { id: string; status?: string }[]
    executions?: { id: string; status: string; result: { stdout: string } }[]
  }
  interface Payload {
    body: unknown
    headers: Record<string, string>
  }
  const heard = ({ executions = [] }: Outcome): Payload => JSON.parse(executions[0]?.result.stdout ?? '') as Payload

  it('09.3 without waiting: where to look, and the ids', async () => {
    await listen('quiet-hook')
    const { code, stdout, stderr } = await svc('webhook', 'send', 'quiet-hook', '{"a": 1}')
    expect(code).toBe(0)
    const [, id = ''] = /^trace_id: [0-9a-f]{24}\ntrigger_instances:\n *- id: ([0-9a-f]{24})\n$/.exec(stdout) ?? []
    expect(stderr).toBe(`Note: To see the outcome: svc trigger-instance explain ${id}\n`)
    const instance = await json<InstanceAnswer>('trigger-instance', 'get', id)
    expect(instance.payload['body']).toEqual({ a: 1 })
    const outcome = await json<Outcome>('webhook', 'send', '/quiet-hook/')
    expect(outcome).toEqual({
      trace_id: expect.stringMatching(idPattern),
      trigger_instances: [{ id: expect.stringMatching(idPattern) }],
    })
    const own = await json<Outcome>(
      'webhook',
      'send',
      'svc',
      `{"trigger": "${await makeType('sent')}", "payload": {"n": 1}}`,
    )
    expect(own.trigger_instances).toHaveLength(1)
  })

  it('09.3 --wait: what came of it, and 1 when that has failed', async () => {
    await listen('waited', {}, 'echo out')
    const { code, stdout, stderr } = await svc('webhook', 'send', 'waited', '{}', '--trace-tag', 'sent-1', '--wait')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /\nexecutions:\n *- id: \S+\n +status: succeeded\n +action: core\.local\n +rule: default\.hears_waited\n +result:\n[^]* stdout: out\n/,
    )
    expect(stderr).toBe('')
    expect(
      (await json<{ trace_tag: string }[]>('trace', 'list', '-c', 'sent-1')).map(({ trace_tag: tag }) => tag),
    ).toEqual(['sent-1'])
    await json('rule', 'disable', 'default.hears_waited')
    const nothing = await svc('webhook', 'send', 'waited', '--wait')
    expect([nothing.code, nothing.stderr]).toEqual([
      0,
      expect.stringMatching(/^Note: No execution was started\. To see why: svc trigger-instance explain /),
    ])
    await listen('failing', {}, 'exit 3')
    expect((await svc('webhook', 'send', 'failing', '--wait=30')).code).toBe(1)
    await listen('slow', {}, 'sleep 60')
    const late = await svc('webhook', 'send', 'slow', '--wait', '1')
    expect([late.code, late.stderr]).toEqual([
      0,
      expect.stringMatching(/^Note: Not finished within 1 second\. To see the outcome: /),
    ])
    for (const wait of ['0', '301', 'soon', '1.5']) {
      expect([wait, (await svc('webhook', 'send', 'waited', '--wait', wait)).code]).toEqual([wait, 2])
    }
  })

  it('09.3 the body from a file, from standard input, or as a form; headers', async () => {
    await listen('bodies')
    const send = async (args: string[], input?: string): Promise<Payload> => {
      const { code, stdout } = await runCli(
        ['webhook', 'send', 'bodies', ...args, '--wait', '-j'],
        env(),
        input === undefined ? {} : { input },
      )
      expect(code).toBe(0)
      return heard(JSON.parse(stdout) as Outcome)
    }
    const path = write('sent.json', { from: 'file' })
    expect((await send([`@${path}`])).body).toEqual({ from: 'file' })
    expect((await send(['-'], '[1, 2]')).body).toEqual([1, 2])
    const form = await send(['--form', 'kind=order', '--form', 'kind=ü=&', '--form', 'n=1'])
    expect(form.body).toEqual({ kind: ['order', 'ü=&'], n: ['1'] })
    const args = [
      'kind=order',
      '-H',
      'content-type: application/x-www-form-urlencoded',
      '-H',
      'X-Kind:order',
      '-H',
      'x-kind: b',
    ]
    const { body, headers } = await send(args)
    expect(body).toEqual({ kind: ['order'] })
    expect(headers).toMatchObject({ 'X-Kind': 'order, b', 'Content-Type': 'application/x-www-form-urlencoded' })
  })

  it('09.3 a signature fits, because the body is sent as it is; what is sent twice counts once', async () => {
    await listen('signed', { signature })
    const body = '{ "kind":  "order" }\n'
    const digest = createHmac('sha256', signature.secret).update(body).digest('hex')
    const args = [
      'webhook',
      'send',
      'signed',
      '-',
      '-H',
      `X-Hub-Signature-256: sha256=${digest}`,
      '-H',
      'X-GitHub-Delivery: 1',
    ]
    const send = async (): Promise<Outcome> => {
      const { code, stdout } = await runCli([...args, '-j'], env(), { input: body })
      expect(code).toBe(0)
      return JSON.parse(stdout) as Outcome
    }
    const first = await send()
    expect(await send()).toEqual({ ...first, repetition: true })
    const unsigned = await svc('webhook', 'send', 'signed', body)
    expect([unsigned.code, unsigned.stdout]).toEqual([
      1,
      // No login would help.
      expect.stringMatching(/^ERROR: 401 Client Error: Unauthorized\nMESSAGE: .*X-Hub-Signature-256.*\n$/),
    ])
  })

  it('09.1 what cannot be sent, and what is refused', async () => {
    await listen('strict')
    expect(await svc('webhook', 'send', 'nope', '{}')).toEqual(missing('Webhook', 'nope'))
    const broken = await svc('webhook', 'send', 'strict', '{kind: order}')
    expect([broken.code, broken.stdout]).toEqual([1, expect.stringMatching(/^ERROR: 400 /)])
    for (const [args, message] of [
      [['{}', '--form', 'a=1'], /^ERROR: Use either a body or --form, not both\.\n$/],
      [['@/nowhere.json'], /^ERROR: The file \/nowhere\.json does not exist\n$/],
    ] as const) {
      const { code, stdout, stderr } = await svc('webhook', 'send', 'strict', ...args)
      expect([args, code, stdout, stderr]).toEqual([args, 2, expect.stringMatching(message), ''])
    }
    for (const args of [
      ['-H', 'X-Kind'],
      ['-H', 'X Kind: order'],
      ['-H', 'X-Kind: a\nX-Auth-Token: b'],
      ['-H', 'X-Kind: €'],
      ['-H', 'svc-api-key: b'],
      ['-H', 'Content-Length: 3'],
      ['--form', 'order'],
      ['--form', '=order'],
      ['--trace-tag', 'a\nb'],
    ]) {
      const { code, stdout, stderr } = await svc('webhook', 'send', 'strict', ...args)
      expect([args, code, stdout]).toEqual([args, 2, ''])
      expect(stderr).toMatch(/^error: option [^]* is invalid\. \S/)
    }
  })

  it('00.15 --debug masks what may be a secret', async () => {
    await listen('masked', { signature })
    const args = ['-H', 'X-Gitlab-Token: canary-1', '-H', 'authorization: Bearer canary-2']
    const debug = async (...more: string[]): Promise<string> => {
      const { stdout, stderr } = await svc('--debug', 'webhook', 'send', 'masked', ...args, ...more)
      return stdout + stderr
    }
    const line = await debug('{"password": "canary-3", "kind": "order"}')
    expect(line).toContain(`--data-binary '{"password":"********","kind":"order"}'`)
    expect(line + (await debug('--form', 'password=canary-4'))).not.toContain('canary')
  })
})

describe('11.5 who may not', () => {
  it('11.5 is told so, 1; an explanation counts the rules that may not be seen', async () => {
    const base = makeFolder()
    const settings = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }
    const guarded = await createTestApp({ basePath: base.path, settings })
    try {
      const headers = await signIn(guarded, 'admin', firstPassword(base.path))
      const trigger = { type: 'core.svc.generic.actiontrigger' }
      const criteria = { 'trigger.action_ref': { type: 'eq', pattern: 'core.echo' } }
      for (const name of ['seen', 'unseen', 'unseen_too']) {
        const rule = { name, enabled: true, trigger, criteria, action: { ref: 'core.noop' } }
        expect((await guarded.call('POST', '/v1/rules', rule, headers)).status).toBe(201)
      }
      await guarded.call('POST', '/v1/executions', { action: 'core.noop' }, headers)
      const id = await waitFor('the instance', async () => {
        const path = '/v1/triggerinstances?status=processed'
        return (await guarded.call<InstanceAnswer[]>('GET', path, undefined, headers)).body[0]?.id
      })
      const scopes = [
        { permission_types: ['trigger_view'] },
        { permission_types: ['rule_view'], resource_uid: 'rule:default:seen' },
      ]
      const { body: key } = await guarded.call<{ key: string }>('POST', '/v1/apikeys', { scopes }, headers)
      const limited = (...args: string[]): Promise<CliExit> =>
        runCli(args, { HOME: folder.path, SVC_API_URL: `${guarded.urls.api}/v1`, SVC_API_KEY: key.key })

      const explained = await limited('trigger-instance', 'explain', id)
      expect(explained.stdout).toMatch(
        /\ndefault\.seen does not match:\n[^]*\nNot shown: 2 rules that you have no permission to view\.\n$/,
      )
      for (const words of [
        ['rule', 'list'],
        ['rule', 'get', 'default.unseen'],
        ['rule', 'disable', 'default.seen'],
        ['trigger-instance', 're-emit', id],
        ['timer', 'list'],
        ['webhook', 'list'],
        ['rule', 'test', '--rule-ref', 'default.unseen', '--trigger-instance-id', id],
      ]) {
        const { code, stdout } = await limited(...words)
        expect([words, code, stdout]).toEqual([
          words,
          1,
          expect.stringMatching(/^ERROR: 403 Client Error: Forbidden\n/),
        ])
      }
    } finally {
      await guarded.stop()
      base.remove()
    }
  })
})
