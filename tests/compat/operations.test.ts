/** Every operation of StackStorm's API answers, or docs/compatibility.md says why it does not. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { call, projectRoot, type TestApp } from '../helpers/server.ts'
import { operations } from './operations.ts'

interface Document {
  paths: Record<string, Record<string, unknown>>
}

let app: TestApp
beforeAll(async () => {
  app = await createTestApp()
})
afterAll(async () => {
  await app.stop()
})

const documentation = readFileSync(join(projectRoot, 'docs/compatibility.md'), 'utf8')
/** Of the table there: operation to reason. */
const absent = new Map(
  [...documentation.matchAll(/^\| `((?:GET|POST|PUT|DELETE) [^`]+)` *\| (.+) \|$/gm)].map(([, name = '', why = '']) => [
    name,
    why,
  ]),
)

describe("the operations of StackStorm's API", () => {
  it('are each in the OpenAPI document', async () => {
    const { body } = await app.call<Document>('GET', '/v1/openapi.json')
    const ours = new Set(
      Object.entries(body.paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, '{x}')}`),
      ),
    )
    expect(operations.filter((operation) => !ours.has(operation))).toEqual([])
  })

  it('each answer, except those that the documentation names with a reason', async () => {
    const refused: string[] = []
    for (const operation of operations) {
      const [method = '', path = ''] = operation.split(' ')
      const url = `${app.urls.api}${path.replaceAll('{x}', 'nobody')}`
      // A reader of the stream would wait for events.
      if (path === '/stream/v1/stream') continue
      const answer = await call<{ code?: string }>(url, method, method === 'GET' ? undefined : {})
      const code = answer.body?.code ?? ''
      if (answer.status === 405 || answer.status >= 500 || ['ROUTE_UNKNOWN', 'SSO_OFF'].includes(code)) {
        refused.push(operation)
      }
    }
    expect(refused).toEqual([...absent.keys()])
  })

  it('are counted in the documentation', () => {
    expect(new Set(operations).size).toBe(operations.length)
    expect(documentation.replace(/\s+/g, ' ')).toContain(
      `${operations.length} operations of StackStorm's API. ${operations.length - absent.size} of them answer`,
    )
  })
})
