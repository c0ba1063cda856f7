import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { CliCommand } from '../command.ts'
import { commands, readCommand } from '../commands/index.ts'
import { addGlobalOptions } from '../options.ts'
import { complete, type Completion, type Lookup } from './engine.ts'

/** What has been asked of a server that has two of everything. */
interface Asked {
  asked: string[]
  completion: Completion
}

async function ask(...words: string[]): Promise<Asked> {
  const program = new CliCommand('svc')
  addGlobalOptions(program)
  for (const { name, alias, summary } of commands) {
    const command = new CliCommand(name).summary(summary)
    program.addCommand(alias === undefined ? command : command.alias(alias))
  }
  const asked: string[] = []
  const lookup: Lookup = {
    names: ({ path }) => {
      asked.push(path)
      return Promise.resolve(['one', 'two'].map((text) => ({ text, about: '' })))
    },
    parameters: (of, id) => {
      asked.push(`parameters of ${of} ${id}`)
      return Promise.resolve({ candidates: [{ text: 'cmd=', about: '' }], files: false, isPart: true })
    },
  }
  const completion = await complete(program, ['svc', ...words], () => Promise.resolve(lookup))
  return { asked, completion }
}

const offered = async (...words: string[]): Promise<string[]> =>
  (await ask(...words)).completion.candidates.map(({ text }) => text)

interface Leaf {
  words: string[]
  command: Command
}

function leavesOf(command: Command, words: string[]): Leaf[] {
  if (command.commands.length === 0) return [{ words, command }]
  return command.commands.flatMap((child) => leavesOf(child, [...words, child.name()]))
}

const leaves = (
  await Promise.all(commands.map(async (entry) => leavesOf(await readCommand(entry), [entry.name])))
).flat()

describe('the whole tree', () => {
  test('every command is reached by completing its words', async () => {
    for (const { words } of leaves) {
      // Kept for a program of its own, and not shown.
      if (words.includes('refire')) continue
      for (const [index, word] of words.entries()) {
        expect(await offered(...words.slice(0, index), word.slice(0, 2))).toContain(word)
        expect(await offered('--url', 'http://x', ...words.slice(0, index), '')).toContain(word)
      }
    }
  })

  test('every option is offered by each of its names, and those that help does not show are not', async () => {
    for (const { words, command } of leaves) {
      const names = await offered(...words, '-')
      for (const { long, short, flags, hidden } of command.options) {
        const isOffered = [long, short].filter((name) => name !== undefined).map((name) => names.includes(name))
        expect([words, flags, ...new Set(isOffered)]).toEqual([words, flags, !hidden])
      }
    }
  })

  test('no option is offered once it is given, unless there may be several', async () => {
    for (const { words, command } of leaves) {
      for (const option of command.options) {
        const { long = '', flags, required, optional, variadic, parseArg } = option
        // Those that all commands share are the same everywhere.
        if (option.hidden || (option.helpGroupHeading !== undefined && words[0] !== 'whoami')) continue
        const given = required || optional ? [long, 'x'] : [long]
        const isRepeatable = variadic || (parseArg?.length ?? 0) > 1
        const isOffered = (await offered(...words, ...given, long)).includes(long)
        expect([words, flags, isOffered]).toEqual([words, flags, isRepeatable])
      }
    }
  })

  test('every choice is offered as the value of its option, apart from it and behind =', async () => {
    for (const { words, command } of leaves) {
      for (const { long, argChoices } of command.options) {
        if (argChoices === undefined || long === undefined) continue
        expect(await offered(...words, long, '')).toEqual(argChoices)
        expect(await offered(...words, `${long}=`)).toEqual(argChoices.map((choice) => `${long}=${choice}`))
      }
    }
  })

  test('every argument has an answer, in which nothing comes twice', async () => {
    for (const { words, command } of leaves) {
      for (let count = 0; count <= command.registeredArguments.length; count += 1) {
        const texts = await offered(...words, ...Array.from({ length: count }, () => 'x'), '')
        expect([words, texts]).toEqual([words, [...new Set(texts)]])
      }
    }
  })
})

describe('what a word stands for', () => {
  test.each([
    [['run', ''], '/actions'],
    [['run', '--', ''], '/actions'],
    [['run', '--user', ''], '/users'],
    [['action', 'get', 'x', ''], '/actions'],
    [['action', 'list', '-p', ''], '/packs'],
    [['rule', 'list', '-g', ''], '/triggertypes'],
    [['rule', 'list', '--action='], '/actions'],
    [['rule', 'test', '--rule-ref', ''], '/rules'],
    [['policy', 'list', '-pt', ''], '/policytypes'],
    [['policy', 'list', '-r', ''], '/actions'],
    [['trace', 'list', '-r', ''], '/rules'],
    [['execution', 'tail', ''], '/executions'],
    [['apikey', 'delete', ''], '/apikeys'],
    [['api-key', 'get', ''], '/apikeys'],
    [['role-assignment', 'list', '-u', ''], '/users'],
    [['run', 'core.x', 'a=1', ''], 'parameters of action core.x'],
    [['run', '--tail', 'core.x', ''], 'parameters of action core.x'],
    [['execution', 're-run', 'last', ''], 'parameters of execution last'],
  ])('svc %j asks for it', async (words, path) => {
    expect((await ask(...words)).asked).toEqual([path])
  })

  test.each([
    ['rule', 'create', ''],
    ['rule', 'test', '--rule', ''],
    ['--cacert', ''],
    ['action', 'list', '--config-file='],
    ['run', 'core.x', 'ls', ''],
    ['run', 'core.x', 'ls', '-l'],
    ['run', '--', 'core.x', ''],
  ])('svc %s %s %s: a file', async (...words) => {
    const { completion, asked } = await ask(...words)
    expect([completion.files, completion.candidates, asked]).toEqual([true, [], []])
  })

  test.each([
    ['user', 'add', ''],
    ['nonsense', ''],
    ['rule', 'nonsense', ''],
    ['rule', 'list', 'x', ''],
  ])('svc %s %s %s: nothing', async (...words) => {
    const { completion, asked } = await ask(...words)
    expect([completion.files, completion.candidates, asked]).toEqual([false, [], []])
  })

  test('options that exclude one another are not offered together', async () => {
    expect(await offered('execution', 'list', '-j', '--y')).toEqual([])
    expect(await offered('rule', 'list', '--disabled', '--en')).toEqual([])
    expect(await offered('rule', 'list', '--en')).toEqual(['--enabled'])
  })

  test('options of several letters, and those in one word', async () => {
    expect(await offered('execution', 'list', '-t')).toEqual(['-t', '-tg', '-tl'])
    expect(await offered('execution', 'list', '-tg', '2030', '--timestamp-')).toEqual(['--timestamp-lt'])
    expect(await offered('execution', 'list', '-ljs', '')).toEqual(['asc', 'desc'])
  })

  test('help completes commands, sub-commands and topics', async () => {
    expect(await offered('help', 'exec')).toContain('execution')
    expect(await offered('help', 'exit')).toEqual(['exit-codes'])
    expect(await offered('help', 'execution', 'ta')).toEqual(['tail'])
  })
})
