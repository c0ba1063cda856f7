/**
 * Canary secrets are sent along every path that a secret can take to an action, and then looked for in everything that the
 * server answers, streams, logs and stores, and in what other accounts of the machine can see of its processes.
 *
 * Exempt is what somebody else has written down, or has to be given: the files of packs and `configs/`, the process that gets
 * the secret, and the arguments of a program that is no script of sh or bash. Secrets of less than four
 * characters are hidden where a schema marks them, not where they turn up.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { createTestApp } from '../helpers/app.ts'
import { waitForLog, type Answer, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { openEvents, type EventClient } from '../helpers/sse.ts'
import { waitFor } from '../helpers/wait.ts'

/** Of more than ASCII, with what JSON and URLs write in another way. */
const canary = (name: string): string => `canäry-${name}-${randomBytes(8).toString('hex')} "/+`

const secrets = {
  parameter: canary('parameter'),
  nested: canary('nested'),
  default: canary('default'),
  plainDefault: canary('plaindefault'),
  immutableDefault: canary('immutabledefault'),
  config: canary('config'),
  dynamicConfig: canary('dynamicconfig'),
  datastore: canary('datastore'),
  ownItem: canary('ownitem'),
  environment: canary('environment'),
  argument: canary('argument'),
  hiddenArgument: canary('hiddenargument'),
  bashArgument: canary('bashargument'),
  python: canary('python'),
  split: canary('split'),
  forms: canary('forms'),
  pythonForms: canary('pythonforms'),
  error: canary('error'),
  directory: canary('directory'),
  notification: canary('notification'),
  rule: canary('rule'),
  key: `-----BEGIN KEY-----\n${randomBytes(24).toString('hex')}\n${randomBytes(24).toString('hex')}\n-----END KEY-----\n`,
}
type Name = keyof typeof secrets

const folder = makeFolder()
const seen = { processes: '', answers: '', streams: '' }
const executions: Record<string, ExecutionAnswer> = {}
let server: TestApp
let admin: Record<string, string>
let general: EventClient

const packFiles: Record<string, string> = {
  'pack.yaml': 'ref: vault\nname: vault\ndescription: d\nversion: 1.0.0\nauthor: a\n',
  'config.schema.yaml': [
    'api_key: {type: string, secret: true}',
    'dynamic: {type: string, secret: true}',
    'region: {type: string, default: north}',
    '',
  ].join('\n'),
  'actions/use.yaml': [
    'name: use',
    'runner_type: local-shell-cmd',
    'parameters:',
    '  password: {type: string, secret: true}',
    '  account: {type: object, properties: {name: {type: string}, pin: {type: string, secret: true}}}',
    '  choice: {type: string, enum: [a, b]}',
    '  count: {type: integer}',
    '',
  ].join('\n'),
  'actions/defaults.yaml': [
    'name: defaults',
    'runner_type: local-shell-cmd',
    'parameters:',
    `  rendered: {type: string, secret: true, default: "{{ svckv.system.default | decrypt_kv }}"}`,
    `  fixed: {type: string, immutable: true, default: "{{ svckv.system.immutableDefault | decrypt_kv }}"}`,
    `  plain: {type: string, secret: true, default: ${JSON.stringify(secrets.plainDefault)}}`,
    '  env: {immutable: true, default: {A: "{{ rendered }}", B: "{{ fixed }}", C: "{{ plain }}"}}',
    '  cmd: {immutable: true, default: \'printf "%s\\n" "$A" "$B" "$C"; printf %s "$A" | sha256sum\'}',
    '',
  ].join('\n'),
  'actions/configured.yaml': [
    'name: configured',
    'runner_type: local-shell-cmd',
    'parameters:',
    '  env: {default: {A: "{{ config_context.api_key }}", B: "{{ config_context.dynamic }}", C: "{{ config_context.region }}"}}',
    '  cmd: {default: \'printf "%s\\n" "$A" "$B" "$C"; printf %s "$A$B" | sha256sum\'}',
    '',
  ].join('\n'),
  'actions/script.yaml': [
    'name: script',
    'runner_type: local-shell-script',
    'entry_point: script.sh',
    'parameters:',
    '  token: {type: string, secret: true, position: 0}',
    '  secret_arguments: {default: false, immutable: true}',
    '',
  ].join('\n'),
  'actions/script.sh':
    '#!/bin/sh\necho "arg $1 env $SVC_ACTION_PARAM_token"; printf %s "$SVC_ACTION_PARAM_token" | sha256sum; sleep 0.2\n',
  'actions/python.yaml': [
    'name: python',
    'runner_type: python-script',
    'entry_point: canary.py',
    'parameters:',
    '  token: {type: string, secret: true}',
    '',
  ].join('\n'),
  'actions/canary.py': [
    'import hashlib, sys',
    'from svc.action import Action',
    '',
    'class Canary(Action):',
    '    def run(self, token):',
    "        key = self.config['api_key']",
    '        print(token, key)',
    '        self.logger.warning(token)',
    '        sys.stderr.write(key)',
    "        return {token: [token, key], 'digest': hashlib.sha256((token + key).encode()).hexdigest()}",
    '',
  ].join('\n'),
  'actions/returning.yaml': [
    'name: returning',
    'runner_type: python-script',
    'entry_point: returning.py',
    'parameters:',
    '  token: {type: string, secret: true}',
    '',
  ].join('\n'),
  'actions/returning.py': [
    'import base64, html, json, urllib.parse',
    'from svc.action import Action',
    '',
    'class Returning(Action):',
    '    def run(self, token):',
    "        basic = base64.b64encode(('joe:' + token).encode()).decode()",
    '        nested = json.dumps(json.dumps(token))',
    "        forms = [basic, token.encode().hex(), urllib.parse.quote(token, ''), html.escape(token), nested, repr(token)]",
    "        self.logger.warning(' '.join(forms))",
    "        return {'forms': forms, html.escape(token): 1, 'headers': {'Authorization': 'Basic ' + basic}}",
    '',
  ].join('\n'),
  'actions/arguments.yaml': [
    'name: arguments',
    'runner_type: local-shell-script',
    'entry_point: arguments.sh',
    'parameters:',
    '  token: {type: string, secret: true, position: 0}',
    '',
  ].join('\n'),
  'actions/arguments.sh': '#!/bin/sh\necho "arg $1"; printf %s "$1" | sha256sum; sleep 0.2\n',
  'actions/forms.yaml': [
    'name: forms',
    'runner_type: local-shell-script',
    'entry_point: forms.sh',
    'parameters:',
    '  token: {type: string, secret: true}',
    '',
  ].join('\n'),
  // As programs write what they pass on, in pieces.
  'actions/forms.sh': String.raw`#!/usr/bin/env bash
set -e
export S=$SVC_ACTION_PARAM_token
forms() {
  printf 'quoted %q\n' "$S"
  printf 'shell %s\n' "\${S@Q}"
  for user in '' a ab joe:; do printf 'base64 %s\n' "$(printf %s "$user$S" | base64 -w0)"; done
  printf 'wrapped '; printf %s "Words before it, so that the lines end in the secret: $S" | base64; echo
  printf 'wrapped '; printf %s "Words before it, so that the lines end in the secret: $S" | base64 -w64; echo
  printf 'hex %s\n' "$(printf %s "$S" | od -An -v -tx1 | tr -d ' \n')"
  printf 'dump '; printf %s "$S" | od -An -v -tx1
  python3 - <<'END'
import html, json, os, shlex, urllib.parse, xml.sax.saxutils as x
s = os.environ['S']
forms = {'repr': repr(s), 'ascii': ascii(s), 'bytes': repr(s.encode()), 'shlex': shlex.quote(s), 'html': html.escape(s),
  'attribute': x.quoteattr(s), 'entities': ''.join('&#%d;' % ord(c) for c in s), 'url': urllib.parse.quote(s, ''),
  'query': urllib.parse.quote_plus(s), 'json': json.dumps(s), 'nested': json.dumps({'a': json.dumps({'b': s})})}
print('\n'.join(f'{name} {form}' for name, form in forms.items()))
END
}
forms | dd bs=7 status=none
forms | dd bs=64k status=none >&2
printf %s "$S" | sha256sum
`.replaceAll('\\$', '$'),
  'actions/bash.yaml': [
    'name: bash',
    'runner_type: local-shell-script',
    'entry_point: bash.sh',
    'parameters:',
    '  token: {type: string, secret: true}',
    '',
  ].join('\n'),
  'actions/bash.sh': '#!/usr/bin/env bash\necho "arg $1"; printf %s "${1#--token=}" | sha256sum; sleep 0.2\n',
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

async function call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
  const answer = await server.call<T>(method, path, body, admin)
  seen.answers += answer.text
  return answer
}

function expectStatus(answer: Answer<unknown>, status: number): void {
  if (answer.status !== status) throw new Error(`answered ${answer.status}: ${answer.text}`)
}

/** What `ps` shows everybody. */
function watchProcesses(): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      seen.processes += `${readFileSync(`/proc/${pid}/cmdline`, 'utf8')}\n`
    } catch {
      // It has ended.
    }
  }
}

/** To its end, all the while looking at processes. */
async function run(name: string, body: Record<string, unknown>): Promise<ExecutionAnswer> {
  const created = await call<ExecutionAnswer>('POST', '/v1/executions', body)
  expectStatus(created, 201)
  return ended(name, created.body.id)
}

async function ended(name: string, id: string): Promise<ExecutionAnswer> {
  const events = await openEvents(`${server.urls.stream}/v1/executions/${id}/output`, admin)
  const execution = await waitFor(`${name} to end`, async () => {
    watchProcesses()
    const { body } = await call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
    return body.end_timestamp === undefined ? undefined : body
  })
  await events.ended
  seen.streams += events.raw()
  executions[name] = execution
  return execution
}

const item = (name: Name, scope = 'system'): string => `{{ svckv.${scope}.${name} | decrypt_kv }}`

/** Templates that fail, and whose failure may quote the value. */
const quoting = (name: Name): string[] => {
  const opened = `(svckv.system.${name} | decrypt_kv)`
  return [
    `{{ ${opened} | from_json_string }}`,
    `{{ ('[' ~ ${opened}) | from_yaml_string }}`,
    `{{ ${opened} | version_bump_major }}`,
    `{{ ${opened} | to_human_time_from_seconds }}`,
    `{{ 'x' | regex_match('(' ~ ${opened}) }}`,
    `{{ {} | jsonpath_query('$[' ~ ${opened}) }}`,
    `{{ {}[${opened}].inner.most }}`,
    `{{ ${opened}() }}`,
  ]
}

const printing = 'printf "%s\\n" "$SECRET"; printf %s "$SECRET" | sha256sum; sleep 0.2'

beforeAll(async () => {
  for (const [name, text] of Object.entries(packFiles)) {
    const path = join(folder.path, 'packs', 'vault', name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text, { mode: 0o755 })
  }
  mkdirSync(join(folder.path, 'configs'))
  const config = { api_key: secrets.config, dynamic: '{{ svckv.system.dynamicConfig }}' }
  writeFileSync(join(folder.path, 'configs', 'vault.yaml'), JSON.stringify(config), { mode: 0o600 })
  server = await createTestApp({
    basePath: folder.path,
    settings: { 'auth.enable': 'True', 'log.level': 'DEBUG', 'log.format': 'json', 'action_sensor.enable': 'True' },
  })
  admin = await signIn(server, 'admin', firstPassword(folder.path))
  general = await openEvents(`${server.urls.stream}/v1/stream`, admin)
  expectStatus(await call('POST', '/v1/packs/register', { packs: ['vault'] }), 200)
  for (const [name, value] of Object.entries(secrets)) {
    const scope = name === 'ownItem' ? 'svckv.user' : 'svckv.system'
    const answer = await call('PUT', `/v1/keys/${name}`, { name, value, scope, secret: true })
    expectStatus(answer, 200)
  }
  await sendEverything()
  await server.call('GET', '/v1/executions/last', undefined, admin)
}, 300_000)

async function sendEverything(): Promise<void> {
  await Promise.all([
    run('parameter', {
      action: 'vault.use',
      parameters: {
        password: secrets.parameter,
        account: { name: 'ada', pin: secrets.nested },
        env: { SECRET: '{{ password }}', PIN: '{{ account.pin }}' },
        cmd: `${printing}; echo "$PIN"; echo "{\\"url\\": \\"https://x/?q=${encodeURIComponent(secrets.parameter)}\\"}"`,
      },
    }),
    run('defaults', { action: 'vault.defaults' }),
    run('config', { action: 'vault.configured' }),
    run('datastore', {
      action: 'core.local',
      parameters: {
        cmd: `echo '${item('datastore')}' '${item('ownItem', 'user')}'; sleep 0.3; echo again '${item('datastore')}'`,
      },
    }),
    run('environment', {
      action: 'core.local',
      parameters: { env: { SECRET: item('environment') }, cmd: `${printing}; env` },
    }),
    run('key', {
      action: 'vault.use',
      parameters: {
        password: secrets.key,
        env: { SECRET: '{{ password }}' },
        cmd: `${printing}; echo "$SECRET" | tac`,
      },
    }),
    run('script', { action: 'vault.script', parameters: { token: secrets.argument } }),
    run('python', { action: 'vault.python', parameters: { token: secrets.python } }),
    run('arguments', { action: 'vault.arguments', parameters: { token: secrets.hiddenArgument } }),
    run('bash', { action: 'vault.bash', parameters: { token: secrets.bashArgument } }),
    run('split', {
      action: 'vault.use',
      parameters: {
        password: secrets.split,
        env: { SECRET: '{{ password }}' },
        // A program that writes so many bytes at a time, to both outputs.
        cmd: 'for size in 1 2 3 5 7 11 13; do for to in 1 2; do printf "<%s>" "$SECRET" | dd bs=$size status=none >&$to; done; done',
      },
    }),
    run('directory', {
      action: 'core.local',
      parameters: { cwd: `/nowhere/${item('directory')}`, cmd: 'true' },
    }),
    run('token', { action: 'core.local', parameters: { cmd: 'echo "$SVC_ACTION_AUTH_TOKEN"; env' } }),
    run('notification', {
      action: 'core.local',
      parameters: { cmd: `echo '${item('notification')}'` },
      notify: {
        'on-complete': {
          message: `${item('notification')} {{ action_results.stdout }} {{ action_parameters.cmd }}`,
          data: { given: item('notification') },
          routes: ['canaries'],
        },
      },
    }),
    ...quoting('notification').map((message, i) =>
      run(`notification ${i}`, {
        action: 'core.local',
        parameters: { cmd: 'true' },
        notify: { 'on-complete': { message, data: { given: message }, routes: ['canaries'] } },
      }),
    ),
    run('templateFails', {
      action: 'vault.use',
      parameters: { password: secrets.parameter, cmd: '{{ password.nope.nope }}' },
    }).catch(() => undefined),
  ])
  // Apart from the others, whose short lives in the list of processes are watched.
  await run('forms', { action: 'vault.forms', parameters: { token: secrets.forms } })
  await run('pythonForms', { action: 'vault.returning', parameters: { token: secrets.pythonForms } })
  // What is refused says why, and not what it was about.
  for (const parameters of [
    { cmd: 'true', count: item('error') },
    { cmd: 'true', password: secrets.error, count: '{{ password }}' },
    { cmd: 'true', choice: item('error') },
    { cmd: 'true', account: item('error') },
    { cmd: 'true', password: { no: secrets.error } },
    { cmd: 'true', account: { pin: [secrets.error] } },
    { cmd: `{{ [${JSON.stringify(item('error').slice(3, -3))}] | nofilter }}`, password: secrets.error },
    { cmd: `{{ (svckv.system.error | decrypt_kv) | from_json_string }}` },
    { cmd: `{{ (svckv.system.error | decrypt_kv).a.b }}` },
    { cmd: 'true', unknown: item('error'), password: secrets.error },
  ]) {
    const answer = await call('POST', '/v1/executions', { action: 'vault.use', parameters })
    expectStatus(answer, 400)
  }
  await sendThroughRules()
  const again = await call<ExecutionAnswer>('POST', `/v1/executions/${executions['parameter']?.id}/re_run`, {})
  expect(again.status).toBe(201)
  await ended('again', again.body.id)
  const changed = await call<ExecutionAnswer>('POST', `/v1/executions/${executions['datastore']?.id}/re_run`, {
    parameters: { timeout: 30 },
  })
  expect(changed.status).toBe(201)
  await ended('againDatastore', changed.body.id)
}

async function sendThroughRules(): Promise<void> {
  const makeRule = async (name: string, parameters: Record<string, unknown>): Promise<void> => {
    const answer = await call('POST', '/v1/rules', {
      name,
      pack: 'vault',
      enabled: true,
      trigger: { type: 'core.svc.webhook', parameters: { url: name } },
      criteria: {},
      action: { ref: 'vault.use', parameters },
    })
    expectStatus(answer, 201)
  }
  await makeRule('works', {
    password: item('rule'),
    env: { SECRET: item('rule') },
    cmd: `${printing}; echo '${item('rule')}'`,
  })
  await makeRule('fails', { cmd: 'true', count: item('rule') })
  await makeRule('configured', { cmd: "echo '{{ config_context.api_key }}'" })
  const failing = quoting('rule').map((count, i) => ({ name: `quotes-${i}`, count }))
  for (const { name, count } of failing) await makeRule(name, { cmd: 'true', count })
  const names = ['works', 'fails', 'configured', ...failing.map(({ name }) => name)]
  for (const url of names) {
    expect((await call('POST', `/v1/webhooks/${url}`, {})).status).toBe(202)
  }
  const enforcements = await waitFor('the rules to be enforced', async () => {
    const { body } = await call<{ rule: { ref: string }; execution_id?: string }[]>('GET', '/v1/ruleenforcements')
    return body.length >= names.length ? body : undefined
  })
  for (const { rule, execution_id: id } of enforcements) if (id !== undefined) await ended(rule.ref, id)
}

/** Everything there is to be read, without asking for secrets. */
async function readEverything(): Promise<void> {
  const lists = ['executions', 'triggerinstances', 'ruleenforcements', 'ruleenforcements/views', 'rules', 'rules/views']
  lists.push(
    'configs',
    'config_schemas',
    'keys',
    'keys?scope=all',
    'traces',
    'runnertypes',
    'packs',
    'triggers',
    'policies',
  )
  for (const list of lists) await call('GET', `/v1/${list}`)
  for (const { id } of (await call<{ id: string }[]>('GET', '/v1/executions?limit=-1')).body) {
    const parts = [
      '',
      '/output',
      '/output/lines',
      '/result',
      '/attribute/result',
      '/children',
      '/result?pretty_format=1',
    ]
    for (const part of parts) await call('GET', `/v1/executions/${id}${part}`)
    const events = await openEvents(`${server.urls.stream}/v1/executions/${id}/output`, admin)
    await events.ended
    seen.streams += events.raw()
  }
  for (const { id } of (await call<{ id: string }[]>('GET', '/v1/triggerinstances?limit=-1')).body) {
    await call('GET', `/v1/triggerinstances/${id}`)
  }
}

/** The ways in which a secret is written, and its longest part, so that half of one is found as well. */
function writings(secret: string): string[] {
  const plain = secret.trim()
  const random = plain.match(/[0-9a-f]{16,}/g) ?? []
  const base64 = [0, 1, 2].map((before) =>
    Buffer.from('x'.repeat(before) + plain)
      .toString('base64')
      .slice(4, 24),
  )
  const json = JSON.stringify(plain).slice(1, -1)
  return [
    plain,
    json,
    JSON.stringify(json).slice(1, -1),
    encodeURIComponent(plain),
    plain.replaceAll('"', '&quot;'),
    ...base64,
    Buffer.from(plain).toString('hex').slice(0, 24),
    ...random,
    ...random.map((text) => text.slice(0, 12)),
  ]
}

function foundIn(text: string, exempt: readonly Name[] = []): string[] {
  return Object.entries(secrets)
    .filter(
      ([name, secret]) => !exempt.some((other) => other === name) && writings(secret).some((w) => text.includes(w)),
    )
    .map(([name]) => name)
}

afterAll(async () => {
  general.close()
  await server.stop()
  folder.remove()
})

describe('what has run', () => {
  it.each<[string, Name[]]>([
    ['parameter', ['parameter']],
    ['defaults', ['default']],
    ['config', ['config', 'dynamicConfig']],
    ['environment', ['environment']],
    ['key', ['key']],
    ['script', ['argument']],
    ['arguments', ['hiddenArgument']],
    ['bash', ['bashArgument']],
    ['forms', ['forms']],
    ['vault.works', ['rule']],
    ['again', ['parameter']],
  ])('02.6 %s was given the secret itself', (name, names) => {
    const execution = executions[name]
    const whole = names.map((each) => secrets[each]).join('')
    expect(execution).toMatchObject({ status: 'succeeded' })
    expect(execution?.result['stdout']).toContain(sha256(whole))
  })

  it('02.9 a Python action was given its configuration, and says nothing of it', () => {
    expect(executions['python']).toMatchObject({
      status: 'succeeded',
      result: {
        result: { '********': ['********', '********'], digest: sha256(secrets.python + secrets.config) },
        stdout: expect.stringMatching(/^\*{8} \*{8}\n?$/) as string,
      },
    })
  })

  it('00.15 a secret that a program encodes, escapes or quotes is masked in output and result', () => {
    const { stdout = '', stderr = '' } = (executions['forms']?.result ?? {}) as { stdout?: string; stderr?: string }
    const lines = stdout.split('\n').slice(0, -1)
    expect(stderr.split('\n')).toEqual(lines)
    const labels = lines.map((line) => line.split(' ')[0])
    expect(labels).toEqual(
      expect.arrayContaining(['quoted', 'shell', 'base64', 'hex', 'dump', 'repr', 'html', 'nested']),
    )
    // Their lines are one form.
    const wrapped = /^wrapped [\w\n+/]+\*{8}\n\n/gm
    expect(stdout.match(wrapped)).toHaveLength(2)
    for (const line of stdout.replaceAll(wrapped, '').trim().split('\n').slice(0, -1)) {
      // A user name, the character that it shares with the secret, quotes and braces.
      expect(line).toMatch(/^\w+ .{0,18}\*{8}[\\"'}]*$/)
    }
    expect(executions['pythonForms']).toMatchObject({
      status: 'succeeded',
      result: {
        result: {
          forms: [/^.{5,6}\*{8}$/, /^\*{8}$/, /^\*{8}$/, /^\*{8}$/, /^"\\"\*{8}\\""$/, /^'\*{8}'$/].map(
            (shown) => expect.stringMatching(shown) as string,
          ),
          '********': 1,
          headers: { Authorization: expect.stringMatching(/^Basic .{5,6}\*{8}$/) as string },
        },
      },
    })
  })

  it('02.4 shows what stands around a secret', () => {
    expect(executions['datastore']?.parameters['cmd']).toBe(
      "echo '********' '********'; sleep 0.3; echo again '********'",
    )
    expect(executions['datastore']?.result['stdout']).toBe('******** ********\nagain ********')
    expect(executions['againDatastore']?.result['stdout']).toBe('******** ********\nagain ********')
    expect(executions['parameter']?.parameters).toMatchObject({
      password: '********',
      account: { name: 'ada', pin: '********' },
      env: { SECRET: '********', PIN: '********' },
    })
    expect(executions['config']?.result['stdout']).toMatch(/^\*{8}\n\*{8}\nnorth\n/)
    expect(executions['arguments']?.result['stdout']).toMatch(/^arg \*{8}\n/)
    expect(executions['bash']?.result['stdout']).toMatch(/^arg --token=\*{8}\n/)
    expect(executions['script']?.result['stdout']).toMatch(/^arg {2}env \*{8}\n/)
    expect(executions['split']?.result).toMatchObject({
      stdout: '<********>'.repeat(7),
      stderr: '<********>'.repeat(7),
    })
    expect(executions['vault.configured']?.result['stdout']).toBe('********')
    expect(executions['token']?.result['stdout']).toMatch(/^\*{8}\n/)
  })

  it('03.3 a search in output finds what stands in the place of a secret, and nothing by the secret', async () => {
    const search = async (run: string, query: Record<string, string>): Promise<number> => {
      const path = `/v1/executions/${executions[run]?.id}/output/search?${new URLSearchParams(query).toString()}`
      const { status, body } = await server.call<{ matches: unknown[] }>('GET', path, undefined, admin)
      expect(status).toBe(200)
      return body.matches.length
    }
    for (const [run, name] of [
      ['parameter', 'parameter'],
      ['environment', 'environment'],
      ['split', 'split'],
      ['script', 'argument'],
    ] as const) {
      expect([run, await search(run, { query: '********' })]).not.toEqual([run, 0])
      for (const query of writings(secrets[name]).filter((text) => !text.includes('\n'))) {
        expect([run, query, await search(run, { query })]).toEqual([run, query, 0])
        expect(await search(run, { query: query.slice(-8), ignore_case: 'true' })).toBe(0)
      }
    }
  })

  it('00.15 administrators who ask for it see the parameters', async () => {
    const path = `/v1/executions/${executions['parameter']?.id}?show_secrets=true`
    const { body } = await server.call<ExecutionAnswer>('GET', path, undefined, admin)
    expect(body.parameters).toMatchObject({ password: secrets.parameter, env: { SECRET: secrets.parameter } })
    const again = `/v1/executions/${executions['againDatastore']?.id}?show_secrets=true`
    const { body: rerun } = await server.call<ExecutionAnswer>('GET', again, undefined, admin)
    expect(rerun.parameters['cmd']).toContain(secrets.datastore)
  })

  it('03.7 neither a command with a secret in it nor a secret argument of a shell script is one of a process', () => {
    for (const started of ['SVC_ACTION_COMMAND', 'arguments.sh', 'bash.sh', 'script.sh']) {
      expect(seen.processes).toContain(started)
    }
    expect(foundIn(seen.processes)).toEqual([])
  })
})

describe('no secret is', () => {
  it('00.15 in any answer', async () => {
    await readEverything()
    // What its author has written into the pack stands in the records of the action.
    expect(foundIn(seen.answers, ['plainDefault'])).toEqual([])
    expect(executions['defaults']?.result['stdout']).toMatch(/^(\*{8}\n){3}/)
  })

  it('00.15 in any stream', async () => {
    await general.frame(({ data }) => data.includes(executions['againDatastore']?.id ?? '-'))
    expect(seen.streams).toContain('********')
    expect(foundIn(seen.streams)).toEqual([])
    expect(foundIn(general.raw(), ['plainDefault'])).toEqual([])
  })

  it('CVE-2025-2877 in the log at level DEBUG', async () => {
    await waitForLog(server, '"level":"AUDIT"')
    expect(foundIn(server.log())).toEqual([])
  })

  it('CVE-2022-31044 in any file of the server, its database and what is being written to it included', () => {
    const isExempt = (name: string): boolean => /\/packs\/vault\/|\/configs\/vault.yaml$/.test(name)
    const files = readdirSync(folder.path, { recursive: true, encoding: 'utf8' })
      .map((name) => join(folder.path, name))
      .filter((name) => statSync(name).isFile() && !isExempt(name))
    expect(files.map((name) => name.slice(folder.path.length + 1))).toEqual(
      expect.arrayContaining(['svc.db', 'svc.db-wal', 'logs/svc.audit.log']),
    )
    const found = files.flatMap((name) =>
      foundIn(readFileSync(name, 'utf8'), ['plainDefault']).map((secret) => `${secret} in ${name}`),
    )
    expect(found).toEqual([])
  })
})
