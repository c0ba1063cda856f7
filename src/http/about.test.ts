import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { waitFor } from '../../tests/helpers/wait.ts'
import { createAboutRoutes } from './about.ts'
import type { Route } from './route.ts'

let http: TestHttp | undefined

afterEach(() => http?.close())

/** The addresses that a browser fetches for the documentation page, and where the document says the API is. */
async function addressesOf(apiUrl: string): Promise<{ page: string[]; document: string; servers: unknown }> {
  http = await startHttp(createAboutRoutes({ routes: [], apiUrl: () => apiUrl }))
  const read = async (path: string): Promise<string> => (await fetch(`${http?.urls.api}${path}`)).text()
  const page = [...(await read('/v1/docs')).matchAll(/(?:href|src)="([^"]+)"/g)].map((match) => match[1] ?? '')
  const document = /url: "([^"]+)"/.exec(await read('/v1/docs/start.js'))?.[1] ?? ''
  const { servers } = JSON.parse(await read('/v1/openapi.json')) as { servers: { url: string }[] } // of OpenAPI
  return { page, document, servers: servers.map(({ url }) => url) }
}

test('the documentation finds its files on the listener itself', async () => {
  expect(await addressesOf('http://127.0.0.1:9101')).toEqual({
    page: ['/v1/docs/swagger-ui.css', '/v1/docs/swagger-ui-bundle.js', '/v1/docs/start.js'],
    document: '/v1/openapi.json',
    servers: ['/'],
  })
})

test('the documentation finds its files behind a proxy that gives the API a path', async () => {
  expect(await addressesOf('https://svc.example.com/api')).toEqual({
    page: ['/api/v1/docs/swagger-ui.css', '/api/v1/docs/swagger-ui-bundle.js', '/api/v1/docs/start.js'],
    document: '/api/v1/openapi.json',
    servers: ['/api'],
  })
})

test.each(['/v1/docs/swagger-ui-bundle.js', '/v1/openapi.json'])(
  '%s: a stranger who asks often and never reads the answers costs no memory',
  async (path) => {
    const count = 300
    let answered = 0
    const counted = createAboutRoutes({ routes: manyRoutes, apiUrl: () => 'http://127.0.0.1:9101' }).map(
      (route): Route =>
        route.kind === 'stream'
          ? route
          : {
              ...route,
              handler: async (request) => {
                const answer: unknown = await route.handler(request)
                answered += 1
                return answer
              },
            },
    )
    http = await startHttp(counted)
    // What is read once is not what is asked about.
    await (await fetch(`${http.urls.api}${path}`)).text()
    const before = process.memoryUsage().arrayBuffers
    const socket = connect(Number(new URL(http.urls.api).port), '127.0.0.1')
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(count))
    await waitFor('all answers', () => answered === count + 1)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000)
    socket.destroy()
    await once(socket, 'close')
  },
)

/** So many that the document has a few hundred KiB. */
const manyRoutes = Array.from({ length: 1000 }, (_, n): Route => ({
  surface: 'api',
  method: 'get',
  path: `/things${n}`,
  permission: 'authenticated',
  summary: 'Says nothing.',
  response: {},
  handler: () => null,
}))
