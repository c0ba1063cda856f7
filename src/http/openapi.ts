/** The OpenAPI document, made from the route table and the schemas that check requests. */
import { version } from '../core/version.ts'
import type { JsonSchema } from '../lib/schema/index.ts'
import { healthPaths, healthSchema } from './health.ts'
import { mayBeRepeated, repeatHeaders } from './repeats.ts'
import type { QueryParameter, Route, Surface } from './route.ts'
import { isPermission } from '../core/permissions.ts'

/** Where the paths of each surface are reached through the API listener. */
const prefixes: Record<Surface, string> = { api: '/v1', auth: '/auth/v1', stream: '/stream/v1' }

const errorTexts: Record<number, string> = {
  400: 'Something in the request has to be changed; `faultstring` says what.',
  401: 'The credential is missing or not valid.',
  403: 'The caller may not do this.',
  404: 'There is no such object.',
  409: 'It exists already, or was changed by someone else at the same time.',
  412: 'It is not any more what `If-Match` names.',
  413: 'The body is too large.',
  503: 'The server cannot do this at the moment; try again.',
  507: 'The disk of the server has no room for it; try again when there is.',
}

const errorSchema: JsonSchema = {
  type: 'object',
  required: ['faultstring'],
  properties: {
    faultstring: { type: 'string', description: 'What is wrong, for people.' },
    code: { type: 'string', description: 'What is wrong, for programs.' },
    'conflict-id': { type: 'string', description: 'On 409: id of the object that exists.' },
  },
}

/**
 * @param publicPath of the API listener, in front of every path: `/api` behind a proxy, else empty
 * @returns an OpenAPI 3.1 document as plain data
 */
export function openApiDocument(routes: readonly Route[], publicPath: string): JsonSchema {
  const components = new Map<string, unknown>([['Error', errorSchema]])
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const path = documentPath(route)
    const operations = (paths[path] ??= {})
    operations[route.method] = operationOf(route, components)
  }
  for (const [path, about] of Object.entries(healthPaths))
    paths[path] = { get: healthOperation(path, about, components) }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc',
      version,
      description: 'Event-driven automation: run actions, watch their output, react to events.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicPath || '/', description: 'The API listener; it answers for the other two as well.' }],
    security: [{ token: [] }, { apiKey: [] }],
    paths,
    components: {
      schemas: Object.fromEntries(components),
      securitySchemes: {
        token: { type: 'apiKey', in: 'header', name: 'X-Auth-Token' },
        apiKey: { type: 'apiKey', in: 'header', name: 'Svc-Api-Key' },
        basic: { type: 'http', scheme: 'basic' },
      },
    },
  }
}

/** The path under which the document lists a route: `/v1/executions/{id}`. */
function documentPath(route: Pick<Route, 'surface' | 'path'>): string {
  const path = route.path === '/' ? '/' : route.path.replace(/[:*]([A-Za-z_]\w*)/g, '{$1}')
  return `${prefixes[route.surface]}${path}`
}

/** Such as `getStreamExecutionsIdOutput`; the same path on another listener is another operation. */
function operationId({ method, surface, path }: Route): string {
  const words = `${surface === 'api' ? '' : surface}${path === '/' ? '/index' : path}`.split(/[^A-Za-z0-9]+/)
  return `${method}${words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join('')}`
}

function operationOf(route: Route, components: Map<string, unknown>): Record<string, unknown> {
  const failures = new Set(route.failures ?? [])
  if (route.permission !== 'public') for (const status of [401, 429]) failures.add(status)
  if (route.permission === 'administrator' || isPermission(route.permission)) failures.add(403)
  if (route.body !== undefined || route.rawBody !== undefined) for (const status of [400, 413]) failures.add(status)
  if (route.query !== undefined) failures.add(400)
  if (route.method !== 'get' && failures.has(503)) failures.add(507)
  return {
    operationId: operationId(route),
    summary: route.summary,
    tags: [route.path.split('/')[1] || 'about'],
    ...(route.permission === 'public' ? { security: [] } : {}),
    ...(route.permission === 'login' ? { security: [{ basic: [] }] } : {}),
    // The empty one: none is needed by who can prove it otherwise.
    ...('provesItself' in route ? { security: [{ token: [] }, { apiKey: [] }, {}] } : {}),
    ...(route.permission === 'administrator' || isPermission(route.permission)
      ? { 'x-permission': route.permission }
      : {}),
    parameters: [
      ...pathParameters(route.path),
      ...Object.entries(route.query ?? {}).map(queryParameter),
      ...Object.entries({ ...(mayBeRepeated(route) ? repeatHeaders : {}), ...route.headers }).map(
        ([name, description]) => ({
          name,
          in: 'header',
          description,
          schema: { type: 'string' },
        }),
      ),
    ],
    ...requestBody(route, components),
    responses: {
      ...successOf(route, components),
      ...Object.fromEntries(
        [...failures]
          .toSorted((a, b) => a - b)
          .map((status) => [
            String(status),
            {
              description: errorTexts[status] ?? 'It failed.',
              content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
            },
          ]),
      ),
    },
  }
}

function healthOperation(
  path: string,
  { summary, answers }: (typeof healthPaths)['/readyz'],
  components: Map<string, unknown>,
): Record<string, unknown> {
  const content = { 'application/json': { schema: hoist(healthSchema, components) } }
  const responses = Object.entries(answers).map(([status, description]) => [status, { description, content }] as const)
  return {
    operationId: `get${path.slice(1, 2).toUpperCase()}${path.slice(2)}`,
    summary,
    tags: ['about'],
    security: [],
    parameters: [],
    responses: Object.fromEntries(responses),
  }
}

const formTypes = ['application/x-www-form-urlencoded', 'multipart/form-data']

function requestBody({ body, rawBody }: Route, components: Map<string, unknown>): Record<string, unknown> {
  const schema = body ?? rawBody
  if (schema === undefined) return {}
  // What is not checked here may be a form as well: an object of lists.
  const types = ['application/json', ...(rawBody === undefined ? [] : formTypes)]
  const content = Object.fromEntries(types.map((type) => [type, { schema: hoist(schema, components) }]))
  return { requestBody: { required: body !== undefined, content } }
}

function successOf(route: Route, components: Map<string, unknown>): Record<string, unknown> {
  if (route.kind === 'stream') {
    return {
      '200': { description: 'Server-sent events.', content: { 'text/event-stream': { schema: { type: 'string' } } } },
    }
  }
  const status = route.status ?? 200
  if (status === 204) return { '204': { description: 'Done.' } }
  const mediaType = route.mediaType?.split(';', 1)[0] ?? 'application/json'
  const answers = Object.entries({ ...route.otherResponses, [status]: route.response })
  const headers = Object.entries(route.answerHeaders ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' } },
  ])
  return Object.fromEntries(
    answers.map(([code, response]) => [
      code,
      {
        description: 'Success.',
        ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) as unknown }),
        content: { [mediaType]: { schema: hoist(response, components) } },
      },
    ]),
  )
}

function pathParameters(path: string): unknown[] {
  return [...path.matchAll(/[:*]([A-Za-z_]\w*)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameter([name, { type, description, required }]: [string, QueryParameter]): unknown {
  return {
    name,
    in: 'query',
    description,
    ...(required === true ? { required } : {}),
    schema: type === 'array' ? { type, items: { type: 'string' } } : { type },
    ...(type === 'array' ? { style: 'form', explode: false } : {}),
  }
}

/** Schemas with a title are listed once, under that name, and referred to. */
function hoist(schema: unknown, components: Map<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => hoist(item, components))
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, hoist(value, components)]))
  const { title } = inner
  if (typeof title !== 'string' || inner['type'] === undefined) return inner
  components.set(title, inner)
  return { $ref: `#/components/schemas/${title}` }
}
