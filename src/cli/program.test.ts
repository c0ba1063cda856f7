import http from 'node:http'
import { Readable } from 'node:stream'
import { describe, expect, test, vi } from 'vitest'
import { createRandom } from '../../tests/helpers/random.ts'
import { commands } from './commands/index.ts'
import { parseParameters } from './input/parameters.ts'
import { runProgram } from './program.ts'
import { leavesOf, readTree } from './reference/tree.ts'
import { CliFailure } from './failures.ts'

/** Nothing listens there, so what gets as far as a request ends with a refused connection. */
const NOWHERE = ['--skip-config', '--api-url', 'http://127.0.0.1:1']

interface Ended {
  code: number
  stdout: string
  stderr: string
}

/** Standard input without anything in it. */
function openNothing(): typeof process.stdin {
  // Of what a terminal has besides, nothing is asked for.
  return Readable.from([]) as typeof process.stdin
}

async function run(...args: string[]): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => ((stdout += String(text)), true))
  // Whoever runs the tests is asked for no password.
  const input = vi.spyOn(process, 'stdin', 'get').mockImplementation(openNothing)
  const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => ((stderr += String(text)), true))
  try {
    const code = await runProgram(args)
    return { code, stdout, stderr }
  } finally {
    out.mockRestore()
    err.mockRestore()
    input.mockRestore()
  }
}

describe('random words', () => {
  test('for an action become parameters or a refusal in words', () => {
    const random = createRandom(3)
    const alphabet = [...'an==,:@{}[]"- 1\\\u0000'.split(''), 'cmd', 'true', '__proto__', '😀']
    const schemas = Object.fromEntries(
      ['string', 'integer', 'number', 'boolean', 'array', 'object'].map((type) => [type.slice(0, 1), { type }]),
    )
    for (let round = 0; round < 3000; round += 1) {
      const list = Array.from({ length: random.below(4) }, () =>
        Array.from({ length: random.below(8) }, () => alphabet[random.below(alphabet.length)]).join(''),
      )
      const name = Object.keys(schemas)[random.below(6)] ?? 's'
      try {
        const parsed = parseParameters(
          [`${name}=${list[0] ?? ''}`, ...list],
          { ...schemas, cmd: {} },
          { autoDict: true },
        )
        expect({ list, parsed: JSON.parse(JSON.stringify(parsed)) as unknown }).toEqual({ list, parsed })
      } catch (error) {
        if (!(error instanceof CliFailure)) throw error
      }
    }
  })
})

describe('the program', () => {
  test('without arguments it shows its usage on standard error and ends with 2', async () => {
    const { code, stdout, stderr } = await run()
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^Usage: svc /)
    const group = await run('execution')
    expect([group.code, group.stdout]).toEqual([2, ''])
    expect(group.stderr).toMatch(/^Usage: svc execution /)
  })

  test('help is grouped, ends with 0, and every command shows an example', async () => {
    const { code, stdout } = await run('--help')
    expect(code).toBe(0)
    for (const { group, name, example } of commands) {
      expect(stdout).toContain(`\n${group}\n`)
      expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'))
      expect(stdout).toContain(`\n    ${example}\n`)
    }
    for (const page of leavesOf(await readTree())) {
      const words = page.name.split(' ')
      const help = await run(...words, '--help')
      expect(help).toEqual({
        code: 0,
        stderr: '',
        stdout: expect.stringMatching(new RegExp(`^Usage: svc ${page.name}[ |]`)),
      })
      expect(help.stdout).toMatch(/\nExamples?:\n {2}\S/)
      expect(await run('help', ...words)).toEqual(help)
    }
  })

  test('what was typed is repeated without what a terminal would obey', async () => {
    const typed = '\u001b[2J\u202e'
    for (const args of [[typed], ['execution', typed], ['execution', 'list', `--${typed}`], ['whoami', typed]]) {
      expect(await run(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('\\u001b[2J') })
    }
    const bad = await run(...NOWHERE, '--api-version', typed, 'whoami')
    expect(bad).toMatchObject({ code: 1, stdout: expect.stringContaining('\\u001b[2J\\u202e'), stderr: '' })
  })

  test('a mistyped command is answered with the nearest one', async () => {
    expect(await run('exection', 'list')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('execution?'),
    })
    expect(await run('execution', 'lst')).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('list?'),
    })
  })

  test('a stack is shown only on request', async () => {
    const request = vi.spyOn(http, 'request').mockImplementation(() => {
      throw new TypeError('out of order')
    })
    try {
      const quiet = await run(...NOWHERE, 'execution', 'get', 'last')
      expect(quiet).toEqual({ code: 1, stdout: 'ERROR: out of order\n', stderr: '' })
      const loud = await run(...NOWHERE, '--debug', 'execution', 'get', 'last')
      expect(loud).toMatchObject({
        code: 1,
        stdout: 'ERROR: out of order\n',
        stderr: expect.stringContaining('    at '),
      })
    } finally {
      request.mockRestore()
    }
  })
})
