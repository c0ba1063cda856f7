import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { CliFailure } from '../failures.ts'
import { parseParameters, type InputSchemas } from './parameters.ts'
import { JsonNumber } from '../../lib/json/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-parameters-'))
afterAll(() => rmSync(folder, { recursive: true }))

const schemas: InputSchemas = {
  cmd: { type: 'string' },
  count: { type: 'integer' },
  ratio: { type: 'number' },
  force: { type: 'boolean' },
  list: { type: 'array' },
  numbers: { type: 'array', items: { type: 'integer' } },
  people: { type: 'array', items: { type: 'object', properties: { age: { type: 'integer' } } } },
  map: { type: 'object', properties: { n: { type: 'integer' } } },
  any: {},
}

function parse(...words: string[]): unknown {
  return parseParameters(words, schemas, { autoDict: false })
}

describe('parseParameters', () => {
  test.each<[string, string[], unknown]>([
    ['text keeps everything after the first =', ['cmd=a=b'], { cmd: 'a=b' }],
    ['text may be empty', ['cmd='], { cmd: '' }],
    ['text may have lines', ['cmd=a\nb'], { cmd: 'a\nb' }],
    ['text that looks like a number stays text', ['cmd=1'], { cmd: '1' }],
    ['text that begins with @ stays text', ['cmd=@here'], { cmd: '@here' }],
    ['an untyped or unknown parameter is text', ['any=1', 'other=true'], { any: '1', other: 'true' }],
    ['integers', ['count=-12'], { count: -12 }],
    ['numbers', ['ratio=1.5e3'], { ratio: new JsonNumber('1.5e3') }],
    [
      'large numbers',
      ['count=820982911946154508', 'ratio=21.0'],
      { count: new JsonNumber('820982911946154508'), ratio: new JsonNumber('21.0') },
    ],
    ['numbers without integer part', ['ratio=.5'], { ratio: 0.5 }],
    ['booleans in any case', ['force=TRUE'], { force: true }],
    ['booleans in any case, too', ['force=False'], { force: false }],
    ['lists as JSON', ['list=[1, "a"]'], { list: [1, 'a'] }],
    ['lists with commas', ['list=a, b ,c'], { list: ['a', 'b', 'c'] }],
    ['a single integer is a list of it', ['list=51'], { list: [51] }],
    ['list items of a declared type', ['numbers=1,2'], { numbers: [1, 2] }],
    ['a list given twice grows', ['list=a', 'list=b,c'], { list: ['a', 'b', 'c'] }],
    ['a list of objects without brackets', ['people={"age": 1}, {"age": 2}'], { people: [{ age: 1 }, { age: 2 }] }],
    ['an empty list', ['list='], { list: [] }],
    ['objects as JSON', ['map={"a": [1]}'], { map: { a: [1] } }],
    ['objects as pairs of text', ['map=a=1,b=x=y'], { map: { a: '1', b: 'x=y' } }],
    ['members of a declared type', ['map=n=1,a=1'], { map: { n: 1, a: '1' } }],
    ['an object given twice grows', ['map=a=1', 'map=b=2'], { map: { a: '1', b: '2' } }],
    ['words without = are the command', ['date', '-R'], { cmd: 'date -R' }],
    [
      'after them nothing is a parameter',
      ['force=true', 'env', 'A=1', 'count=x'],
      { force: true, cmd: 'env A=1 count=x' },
    ],
    ['one word with blanks is the command', ['ls --color=auto'], { cmd: 'ls --color=auto' }],
    ['a path with = is the command', ['/bin/x', '--a=b'], { cmd: '/bin/x --a=b' }],
    ['nothing', [], {}],
  ])('%s', (_what, words, expected) => {
    expect(parse(...words)).toEqual(expected)
  })

  test.each<[string, string[], RegExp]>([
    ['integer', ['count=1.5'], /Invalid value for integer parameter "count": "1\.5" is not a whole number/],
    ['integer, empty', ['count='], /"count": "" is not a whole number/],
    ['integer too long', [`count=${'9'.repeat(4301)}`], /longer than 4300 characters/],
    ['number too large', ['ratio=1e400'], /too large for a float/],
    ['number', ['ratio=1,5'], /not a number/],
    ['number without end', ['ratio=Infinity'], /not a number/],
    ['boolean', ['force=yes'], /boolean parameter "force".*Valid values are: true, false/],
    ['array', ['list=[1,'], /array parameter "list".*not valid JSON/],
    ['array of integers', ['numbers=1,x'], /integer parameter "numbers": "x"/],
    ['array of objects', ['people=a'], /not a JSON list; its items are of type object/],
    ['object', ['map={"a"'], /object parameter "map".*not valid JSON/],
    ['object without pairs', ['map=abc'], /neither JSON nor pairs such as a=1,b=2/],
    ['member', ['map=n=x'], /integer parameter "map\.n"/],
    ['given twice', ['count=1', 'count=2'], /"count" is set more than once/],
    ['command twice', ['cmd=a', 'b'], /command is set twice/],
    ['a name that cannot be', ['my-name=1'], /"my-name" is not a parameter name/],
    ['no name', ['=1'], /"" is not a parameter name/],
  ])('refuses %s', (_what, words, message) => {
    expect(() => parse(...words)).toThrow(CliFailure)
    expect(() => parse(...words)).toThrow(message)
  })

  test('words for an action without cmd name its parameters', () => {
    expect(() => parseParameters(['foo'], { a: {}, b: {} }, { autoDict: false })).toThrow(
      '"foo" does not have the form name=value, and the action has no parameter "cmd". Parameters: a, b.',
    )
    expect(() => parseParameters(['foo'], {}, { autoDict: false })).toThrow('The action has no parameters.')
    const word = { type: 'string', required: true }
    expect(() => parseParameters(['foo'], { env: {}, word }, { autoDict: false })).toThrow('Parameters: word, env.')
  })

  test('@name=path is the text of the file, cast like any other', () => {
    writeFileSync(join(folder, 'text'), 'ü\n1\n')
    writeFileSync(join(folder, 'json'), '\n{"a": 1}\n')
    expect(parse(`@cmd=${join(folder, 'text')}`, `@map=${join(folder, 'json')}`)).toEqual({
      cmd: 'ü\n1\n',
      map: { a: 1 },
    })
  })

  test('a file that cannot be the value is refused in words', () => {
    mkdirSync(join(folder, 'folder'))
    writeFileSync(join(folder, 'bytes'), Buffer.from([0xff, 0xfe]))
    expect(() => parse(`@cmd=${join(folder, 'none')}`)).toThrow(/file ".*none" of @cmd does not exist/)
    expect(() => parse(`@cmd=${join(folder, 'folder')}`)).toThrow(/is a directory/)
    expect(() => parse(`@cmd=${join(folder, 'bytes')}`)).toThrow(/is not UTF-8 text/)
    execFileSync('mkfifo', [join(folder, 'pipe')])
    expect(() => parse(`@cmd=${join(folder, 'pipe')}`)).toThrow(/is a pipe without data/)
    expect(() => parse('@cmd=')).toThrow(/does not exist/)
    expect(() => parse('@cmd=/dev/zero')).toThrow(/file "\/dev\/zero" of @cmd is larger than 16 MiB/)
  })

  test('keys of objects are read as they were written, whatever keys were read before', () => {
    parse('map={"a": 1, "\\\\": 2}')
    expect(parse('map={"a": 1, "\\"": 2}')).toEqual({ map: { a: 1, '"': 2 } })
  })

  test('--auto-dict makes an object of the items key:value of a word', () => {
    const make = (...words: string[]): unknown => parseParameters(words, schemas, { autoDict: true })
    expect(make('list=a:1,b:x:y')).toEqual({ list: [{ a: '1', b: 'x:y' }] })
    expect(make('list=a:1', 'list=a:2,b:')).toEqual({ list: [{ a: '1' }, { a: '2', b: '' }] })
    expect(make('people=age:3')).toEqual({ people: [{ age: 3 }] })
    expect(make('list=a:1,b')).toEqual({ list: ['a:1', 'b'] })
    const cards = { type: 'array', properties: { mtu: { type: 'integer' } } }
    expect(parseParameters(['cards=name:eth0,mtu:1454'], { cards }, { autoDict: true })).toEqual({
      cards: [{ name: 'eth0', mtu: 1454 }],
    })
  })

  test('no name reaches the prototype of anything', () => {
    const parsed = parseParameters(['__proto__=x', 'map=__proto__=y'], schemas, { autoDict: false })
    expect(Object.keys(parsed)).toEqual(['__proto__', 'map'])
    expect(JSON.stringify(parsed)).toBe('{"__proto__":"x","map":{"__proto__":"y"}}')
    expect(parseParameters(['constructor=1', 'toString=2'], {}, { autoDict: false })).toEqual({
      constructor: '1',
      toString: '2',
    })
  })
})
