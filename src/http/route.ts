/** What a module says about one endpoint. The arrays of routes are the API: the OpenAPI document is made from them. */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonSchema } from '../schema.ts'

/** The listener an endpoint belongs to. */
export type Surface = 'auth' | 'api' | 'stream'

/** Contract 11, 11.2; grows with the endpoints. */
export type Permission =
  | 'action_list'
  | 'action_view'
  | 'action_execute'
  | 'runner_type_list'
  | 'runner_type_view'
  | 'runner_type_modify'
  | 'execution_list'
  | 'execution_view'
  | 'execution_rerun'
  | 'execution_stop'
  | 'execution_views_filters_list'
  | 'trace_list'
  | 'trace_view'
  | 'stream_view'

/** Who is calling. */
export interface Principal {
  user: string
  isAdmin: boolean
  /** How the caller proved who it is; `none` while authentication is off. */
  method: 'none' | 'token' | 'api_key' | 'basic'
  location?: 'header' | 'query' | 'cookie'
  /** Wire timestamp, tokens only. */
  expiry?: string
  tokenId?: string
}

/** Contract 00, 0.7. */
export interface QueryParameter {
  type: 'string' | 'boolean' | 'integer' | 'number' | 'array'
  description: string
  required?: boolean
}

export type QueryValue = string | boolean | number | string[] | undefined

/** A checked request. */
export interface ApiRequest {
  principal: Principal
  /** Path variables, percent-decoded. */
  params: Record<string, string>
  /** Declared query parameters that were given, converted to their declared type. */
  query: Record<string, QueryValue>
  /** The parsed body, checked against `body`; `undefined` on routes without one. */
  body: unknown
  headers: IncomingHttpHeaders
  requestId: string
  /** Address of the caller, believed from a proxy only when that is trusted. */
  remoteAddress: string
}

/** An answer that is more than a JSON value with the route's status. */
export class Reply {
  readonly body: unknown
  readonly status: number | undefined
  readonly headers: Record<string, string>
  constructor(body: unknown, more: { status?: number; headers?: Record<string, string> } = {}) {
    this.body = body
    this.status = more.status
    this.headers = more.headers ?? {}
  }
}

/** What a streaming handler writes to. Nothing else writes to a response. */
export interface EventSink {
  /** Ready-made frames. False: the client is slow, wait for `drained` before writing more. */
  write(frames: string): boolean
  drained(): Promise<void>
  /** Bytes accepted but not yet taken by the client. */
  readonly queuedBytes: number
  readonly closed: AbortSignal
}

interface RouteBase {
  surface: Surface
  method: 'get' | 'post' | 'put' | 'delete'
  /** Without version prefix, express syntax: `/executions/:id`. */
  path: string
  /** Old names that answer too. */
  aliases?: string[]
  /**
   * `'public'` needs no credential and must be written out; `'authenticated'` any; `'login'` is for exchanging a user
   * name and a password for a credential.
   */
  permission: Permission | 'public' | 'authenticated' | 'login'
  /** For the OpenAPI document: one sentence. */
  summary: string
  query?: Record<string, QueryParameter>
  /** JSON schema of the request body; absent: the body is not read. */
  body?: JsonSchema
  /** Statuses besides the successful one that the handler itself may cause. */
  failures?: number[]
}

export interface JsonRoute extends RouteBase {
  kind?: 'json'
  /** Default 200. */
  status?: number
  /** Schema of the answer, for the OpenAPI document. */
  response: JsonSchema
  /** Media type when the answer is a string or bytes instead of JSON. */
  mediaType?: string
  handler(request: ApiRequest): unknown
}

export interface StreamRoute extends RouteBase {
  kind: 'stream'
  /** Checks the request (a throw is a normal JSON error); the returned function then writes until it resolves. */
  handler(request: ApiRequest): Promise<(sink: EventSink) => Promise<void>> | ((sink: EventSink) => Promise<void>)
}

export type Route = JsonRoute | StreamRoute

/** Whether it is one that a role grants. */
export function isNamedPermission(permission: Route['permission']): permission is Permission {
  return permission !== 'public' && permission !== 'authenticated' && permission !== 'login'
}
