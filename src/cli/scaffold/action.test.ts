import { describe, expect, test } from 'vitest'
import { planAction, readParameter, runCommandOf, runnerParameterNames } from './action.ts'

describe('parameters', () => {
  test.each([
    ['host', { type: 'string', required: true }],
    ['host:string=', { type: 'string', default: '' }],
    ['when:string=a=b:c', { type: 'string', default: 'a=b:c' }],
    ['tries:integer=-3', { type: 'integer', default: -3 }],
    ['part:number=1.5', { type: 'number', default: 1.5 }],
    ['dry:boolean=false', { type: 'boolean', default: false }],
    ['tags:array=["a"]', { type: 'array', default: ['a'] }],
    ['env_of:object={"a":{}}', { type: 'object', default: { a: {} } }],
    ['token:secret', { type: 'string', secret: true, required: true }],
  ])('%s', (word, schema) => {
    const { name, schema: read } = readParameter(word)
    expect([name, read]).toEqual([word.split(/[:=]/)[0], { description: '', ...schema }])
  })

  test.each([
    ['', 'write name:type'],
    ['Host', 'write name:type'],
    ['a-b', 'write name:type'],
    ['__proto__', 'write name:type'],
    ['a:b:c', 'write name:type'],
    ['$(x)', 'write name:type'],
    ['a:text', '"text" is no type; use string, integer'],
    ['a:constructor', '"constructor" is no type'],
    ['n:integer=1.5', 'the default is no integer'],
    ['n:integer=one', 'the default is no integer'],
    ['n:integer=99999999999999999999', 'the default is no integer'],
    ['b:boolean=yes', 'the default is no boolean as JSON writes it, such as true'],
    ['a:array={}', 'the default is no array'],
    ['o:object=[]', 'the default is no object'],
  ])('%s is refused', (word, why) => {
    expect(() => readParameter(word)).toThrow(why)
  })

  test('that the runner or Python has are refused, and so are equal ones', () => {
    const plan =
      (kind: 'shell' | 'python', ...words: string[]) =>
      (): unknown =>
        planAction('/p', { name: 'a', kind, parameters: words.map(readParameter) })
    expect(plan('shell', 'a', 'a:integer')).toThrow('--parameter a: the name is used twice.')
    expect(plan('python', 'class')).toThrow('this is a word of Python')
    expect(plan('shell', 'class')).not.toThrow()
    for (const kind of ['shell', 'python'] as const) {
      for (const name of runnerParameterNames[kind]) expect(plan(kind, name)).toThrow('the runner has a parameter')
    }
  })
})

test('the command that runs an action gives what it needs', () => {
  const parameters = ['a', 'n:integer', 'o:object', 'x=1'].map(readParameter)
  expect(runCommandOf('web.check', parameters)).toBe(`svc run web.check a=text n=1 o='{"a":1}'`)
})
