import { afterEach, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { createAboutRoutes } from './about.ts'

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
