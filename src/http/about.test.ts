import { afterEach, expect, test } from 'vitest'
import { startHttp, type TestHttp } from '../../tests/helpers/http.ts'
import { createAboutRoutes } from './about.ts'
import { allRights } from './authenticate.ts'
import { Reply, type ApiRequest } from './route.ts'

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

test('strangers who never read their answers are all given the same bytes', async () => {
  const routes = createAboutRoutes({ routes: [], apiUrl: () => 'http://127.0.0.1:9101' })
  const bodyOf = async (path: string, params: Record<string, string>): Promise<unknown> => {
    const route = routes.find((candidate) => candidate.path === path)
    const answer = await route?.handler({ ...request, params })
    return answer instanceof Reply ? answer.body : undefined
  }
  for (const [path, params] of [
    ['/docs/:file', { file: 'swagger-ui-bundle.js' }],
    ['/docs/:file', { file: 'swagger-ui.css' }],
    ['/openapi.json', {}],
  ] as const) {
    const first = await bodyOf(path, params)
    expect(first).toBeInstanceOf(Buffer)
    expect(await bodyOf(path, params)).toBe(first)
  }
})

const request: ApiRequest = {
  principal: { user: '', isAdmin: false, method: 'none' },
  rights: allRights,
  params: {},
  query: {},
  body: undefined,
  headers: {},
  requestId: '',
  remoteAddress: '',
  isSecure: false,
  onClose: () => () => undefined,
}
