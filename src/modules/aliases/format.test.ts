import { describe, expect, test } from 'vitest'
import { createRandom, seedOfRun } from '../../../tests/helpers/random.ts'
import { compileFormat, createCommandBudget, MAX_FINDS, splitPairs } from './format.ts'

const match = (format: string, command: string) => compileFormat(format).match(command, createCommandBudget())
const find = (format: string, command: string) => compileFormat(format).find(command, createCommandBudget())

type Row = [format: string, command: string, parameters: Record<string, string> | undefined]

describe('a format and a command', () => {
  const rows: Row[] = [
    // Text
    ['ping', 'ping', {}],
    ['ping', '  ping\t', {}],
    ['ping', 'ping\n', {}],
    ['ping', 'pings', undefined],
    ['ping', 'a ping', undefined],
    ['ping', 'Ping', undefined],
    ['ping', '', undefined],
    ['deploy the thing', 'deploy the thing', {}],
    ['deploy the thing', 'deploy  the thing', undefined],
    // Required captures
    ['say {{ it }}', 'say hello', { it: 'hello' }],
    ['say {{it}}', 'say hello', { it: 'hello' }],
    ['say {{  it  }}', 'say hello', { it: 'hello' }],
    ['say {{ it }}', 'say hello there', { it: 'hello there' }],
    ['say {{ it }}', 'say hello\nthere', { it: 'hello\nthere' }],
    ['say {{ it }}', 'say  hello', { it: ' hello' }],
    ['say {{ it }}', 'say', undefined],
    ['say {{ it }}', 'say ', undefined],
    ['say {{ it }}', 'say "hello"', { it: 'hello' }],
    ['say {{ it }}', "say 'hello there'", { it: 'hello there' }],
    ['say {{ it }}', 'say ""', { it: '' }],
    ['say {{ it }}', 'say "it\'s"', { it: "it's" }],
    ['say {{ it }}', 'say \'a "b" c\'', { it: 'a "b" c' }],
    ['say {{ it }}', 'say "open', { it: '"open' }],
    ['say {{ it }}', 'say open"', { it: 'open"' }],
    ['say {{ it }}', 'say {"a": 1}', { it: '{"a": 1}' }],
    ['say {{ it }}', 'say {"a": {"b": [1, 2]}}', { it: '{"a": {"b": [1, 2]}}' }],
    ['say {{ it }}', 'say {}', { it: '{}' }],
    ['say {{ it }}', 'say {open', { it: '{open' }],
    ['say {{ it }}', 'say [1, 2]', { it: '[1, 2]' }],
    ['say {{ it }}', 'say größe', { it: 'größe' }],
    ['say {{ it }}', 'say 😀', { it: '😀' }],
    ['{{ all }}', 'anything goes', { all: 'anything goes' }],
    ['{{ a }} {{ b }}', 'x y', { a: 'x', b: 'y' }],
    ['{{ a }} {{ b }}', 'x y z', { a: 'x', b: 'y z' }],
    ['{{ a }} {{ b }}', '"x y" z', { a: 'x y', b: 'z' }],
    ['{{ a }} {{ b }}', '"x y" \'z w\'', { a: 'x y', b: 'z w' }],
    ['{{ a }} {{ b }}', '{"x": 1} z', { a: '{"x": 1}', b: 'z' }],
    ['{{ a }} {{ b }}', 'x', undefined],
    ['{{ a }}{{ b }}', 'xy', { a: 'x', b: 'y' }],
    ['{{ a }}-{{ b }}', 'x-y-z', { a: 'x', b: 'y-z' }],
    ['{{ a }},{{ b }}', '"x,y",z', { a: 'x,y', b: 'z' }],
    ['move {{ a }} to {{ b }}', 'move x to y to z', { a: 'x', b: 'y to z' }],
    ['move {{ a }} to {{ b }}', 'move "x to y" to z', { a: 'x to y', b: 'z' }],
    // Optional captures
    ['go {{ to = home }}', 'go', { to: 'home' }],
    ['go {{ to = home }}', 'go ', { to: 'home' }],
    ['go {{ to = home }}', 'go there', { to: 'there' }],
    ['go {{ to = home }}', 'go "over there"', { to: 'over there' }],
    ['go {{ to = home }}', 'go ""', { to: '' }],
    ['go {{to=home}}', 'go', { to: 'home' }],
    ['go {{ to = the big house }}', 'go', { to: 'the big house' }],
    ['go {{ to = "the big house" }}', 'go', { to: 'the big house' }],
    ["go {{ to = 'the big house' }}", 'go', { to: 'the big house' }],
    ['go {{ to = "" }}', 'go', { to: '' }],
    ['go {{ to = }}', 'go', { to: '' }],
    ['go {{ to = {"a": 1} }}', 'go', { to: '{"a": 1}' }],
    ['go {{ to = {"a": {"b": 1}} }}', 'go', { to: '{"a": {"b": 1}}' }],
    ['go {{to={"a": {"b": {}}}}}', 'go', { to: '{"a": {"b": {}}}' }],
    ['go {{ to = a=b }}', 'go', { to: 'a=b' }],
    ['go {{ to = "a }} b" }}', 'go', { to: 'a }} b' }],
    ['{{ a = 1 }}', '', { a: '1' }],
    ['{{ a = 1 }}', '  ', { a: '1' }],
    ['{{ a = 1 }}', 'x', { a: 'x' }],
    ['x {{ a = 1 }} {{ b = 2 }}', 'x', { a: '1', b: '2' }],
    ['x {{ a = 1 }} {{ b = 2 }}', 'x y', { a: 'y', b: '2' }],
    ['x {{ a = 1 }} {{ b = 2 }}', 'x y z', { a: 'y', b: 'z' }],
    ['x {{ a = 1 }} {{ b = 2 }}', 'x "y z"', { a: 'y z', b: '2' }],
    ['x {{ a }} {{ b = 2 }}', 'x y', { a: 'y', b: '2' }],
    ['x {{ a }} {{ b = 2 }}', 'x y z', { a: 'y', b: 'z' }],
    ['x {{ a }} {{ b = 2 }}', 'x', undefined],
    ['x {{ a = 1 }} end', 'x end', { a: '1' }],
    ['x {{ a = 1 }} end', 'x y end', { a: 'y' }],
    ['x {{ a = 1 }} on {{ b = 2 }}', 'x on', { a: '1', b: '2' }],
    ['x {{ a = 1 }} on {{ b = 2 }}', 'x y on z', { a: 'y', b: 'z' }],
    // Regular expressions
    ['(run|start) {{ a }}', 'start it', { a: 'it' }],
    ['(?:run|start) {{ a }}', 'run it', { a: 'it' }],
    ['runs? {{ a }}', 'run it', { a: 'it' }],
    ['run( now)? {{ a }}', 'run now it', { a: 'it' }],
    ['run {{ a }}( on {{ b = all }})?', 'run it', { a: 'it', b: 'all' }],
    ['run {{ a }}( on {{ b = all }})?', 'run it on web', { a: 'it', b: 'web' }],
    ['run {{ a }}( on {{ b }})?', 'run it', { a: 'it' }],
    ['run {{ a }}[!.]*', 'run it!!', { a: 'it' }],
    ['run {{ a }}[!.]+', 'run it!!', { a: 'it' }],
    ['run.{{ a }}', 'run\nit', { a: 'it' }],
    [String.raw`run\s+{{ a }}`, 'run   it', { a: 'it' }],
    [String.raw`run\?`, 'run?', {}],
    [String.raw`cost \$`, 'cost $', {}],
    ['a|b', 'b', {}],
    ['a|b', 'a b', undefined],
    ['(?i)run {{ a }}', 'RUN It', { a: 'It' }],
    ['(?P<number>[0-9]+) times', '12 times', { number: '12' }],
    ['(?P<number>[0-9]+)? times', ' times', {}],
    [String.raw`\w+ {{ a }}`, 'größe x', { a: 'x' }],
    [String.raw`\d{2,3}`, '1234', undefined],
    [String.raw`\d{2,3}`, '123', {}],
    ['x{,2}', 'xx', {}],
    // Anchors of its own
    ['^run$', 'run', {}],
    ['^run$', ' run', undefined],
    ['^run$', 'run ', undefined],
    ['^run', 'run  ', {}],
    ['run$', '  run', {}],
    [String.raw`^\s*run\s*$`, '  run  ', {}],
    // Key-value pairs
    ['run', 'run a=1', { a: '1' }],
    ['run', 'run a=1 b=2', { a: '1', b: '2' }],
    ['run', 'run a=1 a=2', { a: '2' }],
    ['run', 'a=1 run', undefined],
    ['run {{ x }}', 'run it a=1', { x: 'it', a: '1' }],
    ['run {{ x }}', 'run it x=1', { x: '1' }],
    ['run {{ x }}', 'run it a="b c"', { x: 'it', a: 'b c' }],
    ['run {{ x }}', "run it a='b c' d=e", { x: 'it', a: 'b c', d: 'e' }],
    ['run {{ x }}', 'run it a={"b": "c d"}', { x: 'it', a: '{"b": "c d"}' }],
    ['run {{ x }}', 'run it a=b c', { x: 'it a=b c' }],
    ['run {{ x }}', 'run "it a=b"', { x: 'it a=b' }],
    ['run {{ x }}', 'run http://host/?a=b', { x: 'http://host/?a=b' }],
    ['run {{ x = 1 }}', 'run x=2', { x: '2' }],
    ['run {{ x }}', 'run x=2', undefined],
    ['', 'a=1', { a: '1' }],
    ['set {{ key }}={{ value }}', 'set a=b', { key: 'a', value: 'b' }],
    ['set {{ key }}={{ value }}', 'set a=b c=d', { key: 'a', value: 'b c=d' }],
  ]
  test.each(rows)('%j: %j', (format, command, parameters) => {
    expect(match(format, command)).toEqual(parameters)
  })

  const values: [written: string, value: string][] = [
    ['word', 'word'],
    ['"two words"', 'two words'],
    ["'two words'", 'two words'],
    ['{"a": [1, {"b": 2}]}', '{"a": [1, {"b": 2}]}'],
    ['12.5', '12.5'],
    ['a,b,c', 'a,b,c'],
    ['http://host:80/path?q=1&r=2', 'http://host:80/path?q=1&r=2'],
    ['"say \'hi\'"', "say 'hi'"],
    ['-v', '-v'],
    ['Straße', 'Straße'],
  ]
  const shapes: [format: string, command: (a: string, b: string) => string][] = [
    ['do {{ a }} with {{ b }}', (a, b) => `do ${a} with ${b}`],
    ['do {{ a }} with {{ b = none }}', (a, b) => `  do ${a} with ${b}  `],
    ['do {{ a = none }} with {{ b = none }}', (a, b) => `do ${a} with ${b}`],
    ['(?:please )?do {{ a }}(?: with {{ b }})', (a, b) => `please do ${a} with ${b}`],
    ['^do {{ a }} with {{ b }}$', (a, b) => `do ${a} with ${b}`],
    ['do {{ a }}', (a, b) => `do ${a} b=${b}`],
    ['do', (a, b) => `do b=${b} a=${a}`],
    [String.raw`do\s+{{ a }}\s+with\s+{{ b }}`, (a, b) => `do   ${a}   with   ${b}`],
  ]
  for (const [format, write] of shapes) {
    test(`every way to write a value, in every place of ${format}`, () => {
      for (const [a, valueOfA] of values) {
        for (const [b, valueOfB] of values) {
          const command = write(a, b)
          expect([command, match(format, command)]).toEqual([command, { a: valueOfA, b: valueOfB }])
        }
      }
    })
  }
})

describe('a format that fits several places', () => {
  const issues = '(?P<issue>[A-Z]+-[0-9]+)'
  test.each<[string, string, Record<string, string>[]]>([
    [issues, 'see AB-1 and CD-22', [{ issue: 'AB-1' }, { issue: 'CD-22' }]],
    [issues, 'see AB-1 loud=yes', [{ issue: 'AB-1', loud: 'yes' }]],
    [issues, 'see nothing', []],
    ['close #{{ id }}[;.]', 'close #1; close #2.', [{ id: '1' }, { id: '2' }]],
    ['#{{ id }}!(?:{{ how = now }});', '#1!; #2!;', [{ id: '1', how: '; #2!' }]],
    ['#{{ id }}( now)?;', '#1; #2 now;', [{ id: '1' }, { id: '2' }]],
    ['x*', 'aaa', []],
  ])('%s: %s', (format, command, parameters) => {
    expect(find(format, command)).toEqual(parameters)
  })

  test('stops one place after the most that a command may ask for', () => {
    expect(find('x', 'x'.repeat(5_000))).toHaveLength(MAX_FINDS + 1)
  })
})

test.each<[command: string, text: string, pairs: Record<string, string>]>([
  ['run a=" k=v"', 'run ', { a: ' k=v' }],
  ['a={"x": 1} b=2', '', { a: '{"x": 1}', b: '2' }],
  ['x k= v', 'x k= v', {}],
  ['x k=v y', 'x k=v y', {}],
  ['a="x y" b=\'\' c=""', '', { a: 'x y', b: '', c: '' }],
  [' x  a=1  ', ' x  ', { a: '1' }],
  ['a="b" c" d=1', '', { a: 'b" c', d: '1' }],
  ['x a="b c', 'x a="b c', {}],
  ['x a="b', 'x a="b', {}],
  ['x "a=b"', 'x "a=b"', {}],
  ['x "y a=b" c=d', 'x "y a=b" ', { c: 'd' }],
  ['x a=} b=1', 'x ', { a: '}', b: '1' }],
  ['x __proto__=1', 'x ', Object.fromEntries([['__proto__', '1']])],
  ['x größe=1', 'x ', { größe: '1' }],
  ['x a-b=1', 'x a-b=1', {}],
  ['x\na=1\tb=2\n', 'x\n', { a: '1', b: '2' }],
  ['', '', {}],
])('the key-value pairs at the end of %j', (command, text, pairs) => {
  expect(splitPairs(command)).toEqual({ text, pairs })
})

test.each([
  ['do {{ this', 'has {{ without }}'],
  ['do this }}', 'has }} without {{'],
  ['do {{ this-that }}', 'is neither {{ name }} nor {{ name = default }}'],
  ['do {{ }}', 'is neither'],
  ['do {{ a }} {{ a = 1 }}', '{{ a }} is there twice'],
  ['do (it', 'invalid'],
  ['do (?=it)', 'linear time'],
  [String.raw`(a)\1`, 'back reference'],
  ['(?P<a>x) {{ a }}', 'twice'],
  ['((a{900}){900}){900}', 'steps'],
])('%s is no format', (format, why) => {
  expect(() => compileFormat(format)).toThrow(why)
})

/** The format, or why it is none. */
function compiledOrWhy(format: string): ReturnType<typeof compileFormat> | string {
  try {
    return compileFormat(format)
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}

describe('any text', () => {
  const seed = seedOfRun()
  const random = createRandom(seed)
  const words = ['deploy', 'the', 'web', 'größe', '42', 'to', 'host-1', 'a.b'] as const

  test(`what is written for the captures of a format comes back (SVC_TEST_SEED=${seed})`, () => {
    for (let round = 0; round < 300; round += 1) {
      const names = ['one', 'two', 'three'].slice(0, 1 + random.below(3))
      const given = names.map(() => Array.from({ length: 1 + random.below(3) }, () => random.pick(words)).join(' '))
      const format = names.map((name) => `:${name} {{ ${name}${random.once(2) ? ' = none' : ''} }}`).join(' ')
      const command = names.map((name, i) => `:${name} "${given[i] ?? ''}"`).join(' ')
      expect([command, match(format, command)]).toEqual([
        command,
        Object.fromEntries(names.map((name, i) => [name, given[i]])),
      ])
    }
  })

  test(`a format says what it is or why it is none; a command never throws (SVC_TEST_SEED=${seed})`, () => {
    const pieces = [
      '{{',
      '}}',
      ' ',
      'a',
      'b',
      '=',
      '"',
      "'",
      '{',
      '}',
      '(',
      ')',
      '|',
      '^',
      '$',
      '*',
      '?',
      '\\',
      '\n',
      '😀',
    ] as const
    const write = (length: number): string => Array.from({ length }, () => random.pick(pieces)).join('')
    let compiled = 0
    for (let round = 0; round < 3_000; round += 1) {
      const format = write(random.below(14))
      const ready = compiledOrWhy(format)
      expect(ready).not.toBe('')
      if (typeof ready === 'string') continue
      compiled += 1
      const command = write(random.below(30))
      const found = ready.match(command, createCommandBudget())
      for (const value of Object.values(found ?? {})) expect(typeof value).toBe('string')
      ready.find(command, createCommandBudget())
      const { text, pairs } = splitPairs(command)
      expect(command.startsWith(text)).toBe(true)
      expect(text === command).toBe(Object.keys(pairs).length === 0)
    }
    expect(compiled).toBeGreaterThan(100)
  })
})

describe('hostile text', () => {
  const long = 10_000
  test.each<[string, string, string]>([
    ['quotes', '{{ a }} {{ b }} {{ c }} {{ d }}', '"x '.repeat(long / 3)],
    ['repetitions in repetitions', '(a+)+b', 'a'.repeat(long)],
    ['braces', '{{ a }}{{ b }}!', '{'.repeat(long)],
    ['pairs that are none', 'run {{ a }}', 'a="a="'.repeat(long / 6)],
    ['pairs', 'run {{ a }}', 'a=" '.repeat(long / 4)],
    ['blanks', 'run {{ a }} x', ' '.repeat(long)],
  ])('%s: the work grows with the length of the command', (_, format, command) => {
    const compiled = compileFormat(format)
    const workOn = (text: string): number => {
      const budget = createCommandBudget()
      let work = 0
      const pay = budget.work.bind(budget)
      budget.work = (units) => {
        work += units
        pay(units)
      }
      compiled.match(text, budget)
      return work
    }
    const half = command.slice(0, long / 2)
    expect(workOn(command)).toBeLessThanOrEqual(2.1 * workOn(half) + 1_000)
  })

  test('a format that is large for a long command says so', () => {
    const format = `(?:${'[a-z]{900}'.repeat(5)}x)?`
    expect(() => match(format, 'a'.repeat(long))).toThrow('too long for the format')
    expect(match(format, '')).toEqual({})
  })
})
