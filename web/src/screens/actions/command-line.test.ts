import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { fieldsOf } from '../../components/form/field.ts'
import { curlCommand, svcCommand } from './command-line.ts'

const fields = fieldsOf({
  cmd: { type: 'string' },
  timeout: { type: 'integer' },
  verbose: { type: 'boolean' },
  hosts: { type: 'array' },
  env: { type: 'object' },
  any: {},
  password: { type: 'string', secret: true },
  options: { type: 'object', properties: { token: { type: 'string', secret: true } } },
})

describe('the command line of a run', () => {
  test('has every parameter as its type wants it', () => {
    const parameters = { cmd: "it's", timeout: 5, verbose: true, hosts: ['a b'], env: { A: '1' }, any: 'x' }
    expect(svcCommand({ ref: 'core.local', parameters }, fields)).toEqual({
      text: `svc run core.local cmd='it'\\''s' timeout=5 verbose=true hosts='["a b"]' env='{"A":"1"}' any=x`,
      omitted: [],
    })
  })

  test('leaves out secrets, and what it has no way to write', () => {
    const parameters = { cmd: '', password: 'hidden', options: { token: 'hidden' }, timeout: '{{ t }}', any: 5 }
    expect(svcCommand({ ref: 'a.b', parameters }, fields)).toEqual({
      text: 'svc run a.b cmd=',
      omitted: ['password', 'options', 'timeout', 'any'],
    })
  })

  test('says in which trace and as whom', () => {
    const { text } = svcCommand({ ref: 'a.b', parameters: {}, traceTag: 'my tag', user: 'ada' }, fields)
    expect(text).toBe("svc run --trace-tag='my tag' --user=ada a.b")
  })
})

describe('the request of a run', () => {
  test('is what the page sends, without secrets', () => {
    const { text, omitted } = curlCommand(
      { ref: 'core.local', parameters: { cmd: "echo 'a'", password: 'hidden' }, traceTag: 't' },
      fields,
      'http://127.0.0.1:9101/api/v1/executions',
      true,
    )
    expect(text).not.toContain('hidden')
    expect(text).toContain('"X-Auth-Token: $SVC_AUTH_TOKEN"')
    expect(omitted).toEqual(['password'])
    const body = execFileSync('sh', ['-c', `curl() { for last; do :; done; printf %s "$last"; }\n${text}`])
    expect(JSON.parse(body.toString())).toEqual({
      action: 'core.local',
      parameters: { cmd: "echo 'a'" },
      context: { trace_context: { trace_tag: 't' } },
    })
  })
})
