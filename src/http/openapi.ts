/** The OpenAPI document, made from the route table and the schemas that check requests. */
import { version } from '../core/version.ts'
import { record, Type, type JsonSchema } from '../lib/schema/index.ts'
import { healthPaths, healthSchema } from './health.ts'
import { mayBeRepeated, repeatAnswerHeaders, repeatHeaders } from './repeats.ts'
import type { QueryParameter, Route, Surface } from './route.ts'
import { isPermission } from '../core/permissions.ts'
import { writeJson } from '../lib/json/index.ts'

/** The prefix of each surface on the API listener. */
const prefixes: Record<Surface, string> = { api: '/v1', auth: '/auth/v1', stream: '/stream/v1' }

/** What a failure of each status means, and the component it is listed as. */
const failureResponses: Record<number, { name: string; description: string }> = {
  400: { name: 'BadRequest', description: 'The request is not valid; `faultstring` says what to change.' },
  401: { name: 'Unauthorized', description: 'The credential is missing or not valid.' },
  403: { name: 'Forbidden', description: 'The caller has no permission for this.' },
  404: { name: 'NotFound', description: 'The object does not exist.' },
  405: {
    name: 'MethodNotAllowed',
    description: 'The path exists, but not with this method; `Allow` lists its methods.',
  },
  409: {
    name: 'Conflict',
    description:
      'The object exists already, was changed by another request at the same time, or its state does not permit this.',
  },
  412: { name: 'PreconditionFailed', description: 'The object has changed since the `ETag` in `If-Match` was read.' },
  413: { name: 'PayloadTooLarge', description: 'The body is larger than `api.max_body_bytes`.' },
  429: { name: 'TooManyRequests', description: 'Too many failed logins; `Retry-After` says how many seconds to wait.' },
  500: { name: 'InternalError', description: 'The server failed; its log says why.' },
  503: {
    name: 'Unavailable',
    description: 'The server is starting, stopping or too busy; try again after the seconds in `Retry-After`.',
  },
  507: {
    name: 'InsufficientStorage',
    description: 'The disk has too little free space and nothing was stored; free space, then try again.',
  },
}

/** Statuses whose answers carry `Retry-After`. */
const temporary = [429, 503, 507]

const ErrorRecord = record(
  'Error',
  Type.Object({
    faultstring: Type.String({ description: 'What failed and what to do, for people.' }),
    code: Type.String({ description: 'What failed, for programs; docs/errors.md lists the codes.' }),
    'conflict-id': Type.Optional(Type.String({ description: 'With 409: id of the object that exists.' })),
    details: Type.Optional(
      Type.FreeForm({
        description:
          'What the message says, for programs; each code has its own. `path`: the field of the body that is refused, as names and indexes from the root, such as `["trigger", "parameters", "timezone"]`.',
      }),
    ),
  }),
  {
    example: {
      faultstring: 'Unable to identify resource with id "67a1f0c2e4b0a1d2c3e4f506".',
      code: 'RESOURCE_NOT_FOUND',
    },
  },
)

function failureResponse(status: number): Record<string, unknown> {
  const seconds = { description: 'Seconds to wait.', schema: { type: 'integer' } }
  return {
    description: failureResponses[status]?.description ?? 'The request failed.',
    ...(temporary.includes(status) ? { headers: { 'Retry-After': seconds } } : {}),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  }
}

/**
 * @param publicPath prefix of every path of the API listener: `/api` behind a proxy, else empty
 * @returns an OpenAPI 3.1 document as plain data
 */
export function openApiDocument(routes: readonly Route[], publicPath: string): JsonSchema {
  const components = new Map<string, unknown>()
  hoist(ErrorRecord, components)
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
      responses: Object.fromEntries(
        Object.entries(failureResponses).map(([status, { name }]) => [name, failureResponse(Number(status))]),
      ),
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
  const path = route.path === '/' ? '' : route.path.replace(/[:*]([A-Za-z_]\w*)/g, '{$1}')
  return `${prefixes[route.surface]}${path}`
}

/** `getStreamExecutionsIdOutput`. The surface is a part of it: one path on two listeners is two operations. */
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
  if (mayBeRepeated(route)) for (const status of [400, 409]) failures.add(status)
  if (route.method !== 'get' && failures.has(503)) failures.add(507)
  return {
    operationId: operationId(route),
    summary: route.summary,
    tags: [route.path.split('/')[1] || 'about'],
    ...(route.permission === 'public' ? { security: [] } : {}),
    ...(route.permission === 'login' ? { security: [{ basic: [] }] } : {}),
    // The empty requirement: a request that proves itself needs no credential.
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
            { $ref: `#/components/responses/${failureResponses[status]?.name ?? 'InternalError'}` },
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

function requestBody({ body, rawBody, rawBodyType }: Route, components: Map<string, unknown>): Record<string, unknown> {
  const schema = body ?? rawBody
  if (schema === undefined) return {}
  // An unchecked body may also be a form: an object of lists.
  const unchecked = rawBody === undefined ? [] : formTypes
  const types = rawBodyType === undefined ? ['application/json', ...unchecked] : [rawBodyType]
  const content = Object.fromEntries(types.map((type) => [type, { schema: hoist(schema, components) }]))
  return { requestBody: { required: body !== undefined, content } }
}

function successOf(route: Route, components: Map<string, unknown>): Record<string, unknown> {
  if (route.kind === 'stream') {
    const events = Object.entries(route.events ?? {}).map(([name, data]) => [name, hoist(data, components)])
    return {
      '200': {
        description: 'Server-sent events. `x-events` lists their names, each with the schema of its data.',
        content: { 'text/event-stream': { schema: { type: 'string' } } },
        ...(events.length === 0 ? {} : { 'x-events': Object.fromEntries(events) as unknown }),
      },
    }
  }
  const status = route.status ?? 200
  if (status === 204) return { '204': { description: 'Done.' } }
  const mediaType = route.mediaType?.split(';', 1)[0] ?? 'application/json'
  const answers = Object.entries({ ...route.otherResponses, [status]: route.response })
  const repeated = mayBeRepeated(route) ? repeatAnswerHeaders : {}
  const headers = Object.entries({ ...repeated, ...route.answerHeaders }).map(([name, description]) => [
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

function isOpen(schema: Record<string, unknown>): boolean {
  const says = ['properties', 'patternProperties', 'additionalProperties', '$ref', 'oneOf', 'anyOf', 'allOf']
  return [schema['type']].flat().includes('object') && !says.some((keyword) => keyword in schema)
}

/** Keywords whose values are data, even when they look like schemas. */
const dataKeywords = ['default', 'enum', 'const', 'examples']

/**
 * Lists each named schema once as a component and refers to it.
 *
 * @throws Error for two schemas of one name
 */
function hoist(schema: unknown, components: Map<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => hoist(item, components))
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [
      name,
      dataKeywords.includes(name) ? (value as unknown) : hoist(value, components),
    ]),
  )
  // Generated clients would accept no keys of an object without declared properties.
  if (isOpen(inner)) inner['additionalProperties'] = true
  const { title } = inner
  if (typeof title !== 'string' || inner['type'] === undefined) return inner
  const known = components.get(title)
  if (known !== undefined && writeJson(known) !== writeJson(inner)) {
    throw new Error(`two schemas have the name ${title}`)
  }
  components.set(title, inner)
  return { $ref: `#/components/schemas/${title}` }
}
