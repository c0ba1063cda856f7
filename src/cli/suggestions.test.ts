import { describe, expect, test } from 'vitest'
import type { ApiResponse } from './connection/responses.ts'
import type { Client } from './connection/client.ts'
import { commands } from './commands/index.ts'
import { similarNames, suggestActions, suggestCommands } from './suggestions.ts'

const nouns = commands.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias]))

describe('near names', () => {
  test.each([
    ['exection', ['execution']],
    ['actions', ['action']],
    ['policies', ['policy']],
    ['inquiries', ['inquiry']],
    ['Executions', ['execution']],
    ['trigger_instance', ['trigger-instance']],
    ['triggerinstances', ['trigger-instance']],
    ['api_key', ['apikey']],
    ['exec', ['execution']],
    ['pcak', ['pack']],
    ['whoam', ['whoami']],
    ['frobnicate', []],
    ['', []],
    ['e'.repeat(10_000), []],
  ])('of %s', (word, near) => {
    expect(similarNames(word, nouns)).toEqual(near)
  })

  test('another word of the same length is none', () => {
    expect(similarNames('nope', ['noop', 'local', 'http'])).toEqual([])
    expect(similarNames('locl', ['noop', 'local', 'local_sudo', 'remote'])).toEqual(['local'])
  })
})

describe('commands', () => {
  test.each([
    ['actions', ['list'], '(Did you mean action?)\n'],
    ['list', ['actions'], '(Did you mean svc action list?)\n'],
    ['show', ['rule', 'core.x'], '(Did you mean svc rule get?)\n'],
    ['tail', [], '(It is a sub-command of execution, sensor. Example: svc execution tail)\n'],
    ['execute', ['core.local'], expect.stringContaining('svc action execute')],
    ['frobnicate', [], ''],
    ['\u001b[2J', [], ''],
  ])('svc %s', async (word, rest, told) => {
    expect(await suggestCommands('svc', word, rest, nouns)).toEqual(told)
  })

  test('a sub-command without its noun is told with the nouns that have it', async () => {
    const told = await suggestCommands('svc', 'enable', [], nouns)
    expect(told).toMatch(/^\(It is a sub-command of action, .*\. Example: svc action enable\)\n$/)
    expect(told).toContain('rule')
    expect(told).not.toContain('webhook')
  })

  test('a sub-command by another name, a mistyped one, and one that nothing is like', async () => {
    const known = ['list', 'get', 'delete']
    expect(await suggestCommands('svc rule', 'rm', [], known)).toBe('(Did you mean delete?)\n')
    expect(await suggestCommands('svc rule', 'lst', [], known)).toBe('(Did you mean list?)\n')
    expect(await suggestCommands('svc rule', 'x', [], known)).toBe('(Commands of svc rule: list, get, delete)\n')
  })
})

describe('actions', () => {
  const answer = (refs: unknown[]): ApiResponse => ({ status: 200, headers: {}, body: refs.map((ref) => ({ ref })) })
  const ask = (call: () => Promise<ApiResponse>): Promise<string> => {
    // Of a client, only `call` is asked for.
    const client = { call } as unknown as Client
    return suggestActions({ client }, 'core.locl')
  }

  test('those of its pack that are written nearly the same', async () => {
    expect(await ask(() => Promise.resolve(answer(['core.local', 'core.http'])))).toBe('(Did you mean core.local?)\n')
    expect(await ask(() => Promise.resolve(answer(['core.http'])))).toBe('')
  })

  test('nothing when the server fails, answers nonsense, or says nothing', async () => {
    expect(await ask(() => Promise.reject(new Error('gone')))).toBe('')
    expect(await ask(() => Promise.resolve({ status: 200, headers: {}, body: 7 }))).toBe('')
    expect(await ask(() => Promise.resolve(answer([null, {}, '\u001b[2J'])))).toBe('')
    expect(await ask(() => new Promise(() => undefined))).toBe('')
  })
})
