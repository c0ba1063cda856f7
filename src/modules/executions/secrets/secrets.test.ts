/** Secrets of executions: at rest, in what a run says, and in what is said about it. */
import { afterEach, describe, expect, it } from 'vitest'
import { startEngine, type Engine, type EngineOptions } from '../../../../tests/helpers/engine.ts'
import { TextSink } from '../../../../tests/helpers/text-sink.ts'
import { waitFor } from '../../../../tests/helpers/wait.ts'
import { loadEncryption } from '../../../core/encryption.ts'
import { cipherTextInvalid, templateFailed } from '../../../core/errors.ts'
import type { RunContext, RunResult } from '../../../runners/runner.ts'
import { MASK } from '../../../lib/schema/index.ts'
import { TemplateError } from '../../../lib/template/render.ts'
import type { Execution } from '../types.ts'
import type { TemplateReader } from '../../../core/template-reader.ts'

const PASSWORD = 'hunter22-secret'
const parameters = {
  password: { type: 'string', secret: true },
  text: { type: 'string' },
  count: { type: 'integer' },
  tokens: { type: 'array', items: { type: 'string', secret: true } },
}

let engine: Engine

afterEach(() => engine.stop())

const succeed = (result: Record<string, unknown> = {}): Promise<RunResult> =>
  Promise.resolve({ status: 'succeeded', result })

async function start(
  run: (context: RunContext) => Promise<RunResult>,
  more: Partial<EngineOptions> = {},
): Promise<void> {
  engine = await startEngine({ run, parameters, ...more })
}

async function ended(given: Record<string, unknown>): Promise<Execution & { result?: Record<string, unknown> }> {
  const id = await engine.request({ parameters: given })
  return waitFor('the end of the execution', () => {
    const found = engine.executions.findWithResult(id)
    // A runner gives objects.
    return found?.end_timestamp === null ? undefined : (found as Execution & { result?: Record<string, unknown> })
  })
}

function outputOf({ id }: Execution, type?: 'stdout' | 'stderr'): string {
  const cursor = engine.executions.outputCursor(id)
  const records = []
  for (let page = cursor.after(0, type); page.length > 0; page = cursor.after(page.at(-1)?.seq ?? 0, type)) {
    records.push(...page)
  }
  return records.map(({ host, data }) => (host === null ? data : `${host}:${data}`)).join('')
}

function stored({ id }: Execution): { parameters: string; sealed_parameters: string | null; result: string } {
  const { database } = engine
  const row = database.first(
    database.build
      .selectFrom('executions')
      .leftJoin('execution_results', 'execution_id', 'id')
      .select(['parameters', 'sealed_parameters', 'result'])
      .where('id', '=', id),
  )
  if (row === undefined) throw new Error('no such execution')
  return { ...row, result: row.result ?? '' }
}

describe('at rest', () => {
  it('parameters have masks where secrets are, also inside texts that templates have made, and the run has all of it', async () => {
    const given: unknown[] = []
    await start((context) => {
      given.push(context.actionParameters)
      return succeed()
    })
    const execution = await ended({
      password: PASSWORD,
      text: 'curl -u a:{{ password }} https://x',
      tokens: ['t0ken-1'],
    })
    const { parameters: text, sealed_parameters: sealed } = stored(execution)
    expect(JSON.parse(text)).toEqual({ password: MASK, text: `curl -u a:${MASK} https://x`, tokens: [MASK] })
    expect(sealed).toMatch(/^[0-9A-F]+$/)
    expect(given).toEqual([
      { password: PASSWORD, text: `curl -u a:${PASSWORD} https://x`, count: null, tokens: ['t0ken-1'] },
    ])
  })

  it('the same of long parameters, which are masked and written between other work', async () => {
    const given: unknown[] = []
    await start((context) => {
      given.push(context.actionParameters)
      return succeed()
    })
    const long = `${'\n"x'.repeat(100_000)} {{ password }} ${'y'.repeat(100_000)}`
    const execution = await ended({ password: PASSWORD, text: long, count: 7 })
    const { parameters: text, sealed_parameters: sealed } = stored(execution)
    const masked = { password: MASK, text: long.replace('{{ password }}', MASK), count: 7 }
    expect(JSON.parse(text)).toEqual(masked)
    expect(engine.executions.record(execution)['parameters']).toEqual(masked)
    expect(sealed).toMatch(/^[0-9A-F]+$/)
    expect(given).toMatchObject([{ password: PASSWORD, text: long.replace('{{ password }}', PASSWORD), count: 7 }])
  })

  it('nothing is encrypted where nothing is secret', async () => {
    await start(() => succeed())
    const execution = await ended({ text: 'plain', password: null })
    expect(stored(execution)).toMatchObject({ sealed_parameters: null, parameters: '{"text":"plain","password":null}' })
    expect(engine.executions.record(execution)['parameters']).toEqual({ text: 'plain', password: MASK })
  })

  it('with encryption switched off they are stored as they are, and masked for whoever reads them', async () => {
    await start(() => succeed(), { encryption: await loadEncryption({ enabled: false, keyPath: '', ownKeyPath: '' }) })
    const execution = await ended({ password: PASSWORD })
    expect(stored(execution)).toMatchObject({
      sealed_parameters: null,
      parameters: JSON.stringify({ password: PASSWORD }),
    })
    expect(engine.executions.record(execution)['parameters']).toEqual({ password: MASK })
  })

  it('with masking switched off they are encrypted all the same, and shown', async () => {
    await start((context) => succeed({ said: context.actionParameters['password'] }), { maskSecrets: false })
    const execution = await ended({ password: PASSWORD })
    expect(stored(execution).parameters).toBe(JSON.stringify({ password: MASK }))
    expect(engine.executions.record(execution)['parameters']).toEqual({ password: PASSWORD })
    expect(execution.result).toEqual({ said: PASSWORD })
  })

  it('what cannot be opened any more is shown with masks, and its run fails with the reason', async () => {
    let isLost = false
    const encryption = await loadEncryption({ enabled: false, keyPath: '', ownKeyPath: '' })
    await start(() => succeed(), {
      maskSecrets: false,
      encryption: {
        ...encryption,
        enabled: true,
        encrypt: (plain) => Buffer.from(plain).toString('hex'),
        decrypt(sealed) {
          if (isLost) throw cipherTextInvalid('it', 'the key is gone')
          return Buffer.from(sealed, 'hex').toString()
        },
      },
    })
    const before = await ended({ password: PASSWORD })
    isLost = true
    expect(engine.executions.record(before)['parameters']).toEqual({ password: MASK })
    const after = await ended({ password: PASSWORD })
    expect(after).toMatchObject({ status: 'failed', result: { error: 'Unable to decrypt it: the key is gone.' } })
  })

  it('results have masks where the schema of the output marks secrets; administrators see them', async () => {
    const result = { output: { user: 'ada', key: 'new-api-key' }, stdout: 'made' }
    await start(() => succeed(result), {
      outputSchema: { type: 'object', properties: { key: { type: 'string', secret: true } } },
    })
    const execution = await ended({})
    const masked = { output: { user: 'ada', key: MASK }, stdout: 'made' }
    expect(JSON.parse(stored(execution).result)).toEqual(masked)
    expect(engine.executions.record(execution)['result']).toEqual(masked)
  })
})

describe('a run', () => {
  it('is masked stream by stream: a secret in pieces, of several hosts, on two outputs, and to the end', async () => {
    await start((context) => {
      for (const unit of `<${PASSWORD}>`) {
        void context.emit('stdout', unit)
        void context.emit('stderr', unit, 'a')
        void context.emit('stderr', unit, 'b')
      }
      // The beginning of one, which never goes on.
      void context.emit('stdout', PASSWORD.slice(0, 8))
      return succeed({ stdout: `${PASSWORD}!` })
    })
    const execution = await ended({ password: PASSWORD })
    expect(outputOf(execution, 'stdout')).toBe(`<${MASK}>${PASSWORD.slice(0, 8)}`)
    const stderr = outputOf(execution, 'stderr')
    for (const host of ['a', 'b']) {
      const ofHost = [...stderr.matchAll(new RegExp(`${host}:([^ab:]*)`, 'g'))].map(([, text]) => text).join('')
      expect(ofHost).toBe(`<${MASK}>`)
    }
    expect(execution.result).toEqual({ stdout: `${MASK}!` })
  })

  it('hides the beginning of a secret at the end of a text that was cut, in keys, and in numbers', async () => {
    const cut = PASSWORD.slice(0, 9)
    await start(() =>
      succeed({ stdout: `x${cut}`, stdout_truncated: true, stderr: `x${cut}`, [PASSWORD]: [{ deep: PASSWORD }] }),
    )
    const { result } = await ended({ password: PASSWORD })
    expect(result).toEqual({ stdout: `x${MASK}`, stdout_truncated: true, stderr: `x${cut}`, [MASK]: [{ deep: MASK }] })
  })

  it('hides the secrets of a configuration once the runner has asked for it', async () => {
    const secret = 'config-secret'
    await start(
      (context) => {
        void context.emit('stdout', 'before config-sec')
        const { key } = context.config().values
        void context.emit('stdout', `after ${String(key)}`)
        return succeed({ key })
      },
      { packConfigs: { resolve: () => ({ values: { key: secret }, secrets: [secret], withoutSecrets: () => ({}) }) } },
    )
    const execution = await ended({ password: PASSWORD })
    expect(outputOf(execution)).toBe(`before config-secafter ${MASK}`)
    expect(execution.result).toEqual({ key: MASK })
  })

  it('says nothing secret when it fails, in the result and in the log', async () => {
    const sink = new TextSink()
    await start(() => Promise.reject(new Error(`no login with ${PASSWORD}`, { cause: new Error(PASSWORD) })), { sink })
    const { result } = await ended({ password: PASSWORD })
    expect(result).toEqual({ error: `no login with ${MASK}`, traceback: `no login with ${MASK}` })
    await waitFor('the log', () => sink.text.includes('runner.failed'))
    expect(sink.text).not.toContain(PASSWORD)
  })

  it('that cannot begin says why without the secrets it was given', async () => {
    await start(() => succeed(), {
      parameters: {
        ...parameters,
        parsed: { type: 'object', immutable: true, default: '{{ password | refuse }}' },
      },
      templates: () => ({
        variables: {},
        filters: {
          refuse([value]) {
            // As with what has changed since it was asked for.
            if (engine.executions.last() !== undefined) throw new TemplateError('FILTER', `no: ${String(value)}`)
            return '{}'
          },
        },
      }),
    })
    const execution = await ended({ password: PASSWORD })
    expect(execution.status).toBe('failed')
    expect(JSON.stringify(execution.result)).toContain(`no: ${MASK}`)
    expect(JSON.stringify(execution.result)).not.toContain(PASSWORD)
  })

  it('tells its runner what must not be seen', async () => {
    const hidden: boolean[] = []
    await start((context) => {
      hidden.push(context.containsSecret(`echo ${PASSWORD}`), context.containsSecret('echo'))
      return succeed()
    })
    await ended({ password: PASSWORD })
    expect(hidden).toEqual([true, false])
  })

  it('settled from outside is masked as well', async () => {
    const held = Promise.withResolvers<RunResult>()
    await start(() => held.promise)
    const id = await engine.request({ parameters: { password: PASSWORD } })
    await engine.call('put', '/executions/:id', id, { status: 'succeeded', result: { said: `it is ${PASSWORD}` } })
    held.resolve({ status: 'succeeded', result: {} })
    expect(engine.executions.findWithResult(id)?.result).toEqual({ said: `it is ${MASK}` })
  })

  it('settled from outside has masks where the schema of the output marks secrets', async () => {
    const held = Promise.withResolvers<RunResult>()
    await start(() => held.promise, {
      outputSchema: { type: 'object', properties: { key: { type: 'string', secret: true } } },
    })
    const id = await engine.request({ parameters: {} })
    const result = { output: { key: 'made-outside', user: 'ada' } }
    await engine.call('put', '/executions/:id', id, { status: 'succeeded', result })
    held.resolve({ status: 'succeeded', result: {} })
    const settled = engine.executions.findWithResult(id)
    expect(settled?.result).toEqual({ output: { key: MASK, user: 'ada' } })
    expect(settled?.end_timestamp).not.toBeNull()
  })

  it('can be settled from outside when its parameters cannot be opened any more', async () => {
    const held = Promise.withResolvers<RunResult>()
    let isLost = false
    const encryption = await loadEncryption({ enabled: false, keyPath: '', ownKeyPath: '' })
    await start(() => held.promise, {
      encryption: {
        ...encryption,
        enabled: true,
        encrypt: (plain) => Buffer.from(plain).toString('hex'),
        decrypt(sealed) {
          if (isLost) throw cipherTextInvalid('it', 'the key is gone')
          return Buffer.from(sealed, 'hex').toString()
        },
      },
    })
    const id = await engine.request({ parameters: { password: PASSWORD } })
    await waitFor('its run', () => engine.statusOf(id) === 'running')
    isLost = true
    await engine.call('put', '/executions/:id', id, { status: 'failed', result: { by: 'hand' } })
    held.resolve({ status: 'succeeded', result: {} })
    expect(engine.executions.findWithResult(id)).toMatchObject({ status: 'failed', result: { by: 'hand' } })
  })
})

describe('templates', () => {
  const resolve = (pack: string, { user }: TemplateReader) => ({
    values: { region: 'north', key: `key-of-${user}`, deep: { of: pack } },
    secrets: [`key-of-${user}`],
    withoutSecrets: () => ({}),
  })
  const items = (scope: string) => ({ get: (name: string) => `${scope} ${name}` })
  const templates = (): ReturnType<NonNullable<EngineOptions['templates']>> => ({
    variables: { svckv: { get: items } },
    filters: { decrypt_kv: (value) => `open ${String(value)}` },
  })

  it('read the configuration of the pack, the context and the datastore by all their names', async () => {
    const texts: unknown[] = []
    await start(
      (context) => {
        texts.push(context.actionParameters['text'])
        return succeed()
      },
      { packConfigs: { resolve }, templates },
    )
    const at = async (text: string): Promise<unknown> => {
      const execution = await ended({ text })
      return { shown: execution.parameters['text'], given: texts.pop() }
    }
    const both = (text: string): unknown => ({ shown: text, given: text })
    expect(await at('{{ config_context.region }}')).toEqual(both('north'))
    expect(await at('{{ config_context.deep.of }} {{ config_context.none | default(7) }}')).toEqual(both('test 7'))
    expect(await at('k={{ config_context.key }}')).toEqual({ shown: `k=${MASK}`, given: 'k=key-of-svc' })
    expect(await at('{{ action_context.user }} {{ action_context.pack }}')).toEqual(both('svc test'))
    expect(await at('{{ svckv.system.a }} {{ system.a }} {{ _user.a }}')).toEqual(both('system a system a user a'))
    expect(await at("{{ 'x' | decrypt_kv }}!")).toEqual({ shown: `${MASK}!`, given: 'open x!' })
  })

  it('find a parameter before anything else of its name', async () => {
    await start(() => succeed(), { templates, parameters: { ...parameters, system: { type: 'string' } } })
    expect((await ended({ text: '{{ system }}', system: 'mine' })).parameters['text']).toBe('mine')
  })

  it('that read no configuration do not need one', async () => {
    await start(() => succeed(), {
      packConfigs: {
        resolve() {
          throw templateFailed('key', 'the configuration is broken')
        },
      },
    })
    expect(await ended({ text: '{{ action_context.user }}' })).toMatchObject({ status: 'succeeded' })
    await expect(engine.request({ parameters: { text: '{{ config_context.key }}' } })).rejects.toThrow('is broken')
  })

  it.each([
    ['of another type', { password: PASSWORD, count: '{{ password }}' }],
    ['decrypted', { count: '{{ "it" | decrypt_kv }}' }],
    ['of the configuration', { count: '{{ config_context.key }}' }],
  ])('that give a secret which does not fit do not have it repeated: %s', async (_, given) => {
    await start(() => succeed(), { packConfigs: { resolve }, templates })
    const refused = engine.request({ parameters: given })
    await expect(refused).rejects.toThrow(`count: invalid literal for int() with base 10: '${MASK}'`)
  })
})
