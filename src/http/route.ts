/**
 * What a module says about one endpoint. The arrays of routes are the API: the OpenAPI document is made from them.
 *
 * To add an endpoint:
 *
 * 1. `types.ts` declares each record that travels, once: `export const TraceRecord = record('Trace', Type.Object({ … }),
 *    { example: { … } })`, and beside it `export type TraceRecord = Static<typeof TraceRecord>`. Properties that may be
 *    missing are `Type.Optional(…)`, texts of a fixed set `Type.Enum([…])`, objects with any keys `Type.FreeForm()`.
 *    An object without `additionalProperties: false` takes unknown properties too, as everywhere in JSON schema.
 * 2. `routes.ts` lists `route({ surface, method, path, permission, summary, query, body: TraceRequest,
 *    response: TraceRecord, failures, handler })`. The handler gets `params`, `query` and `body` typed from `path`,
 *    `query` and `body`; a cast is a sign of a schema that says too little. Lists are `listEndpoint({ … })` (`list.ts`);
 *    one record of pack content that is read, replaced and deleted is `contentRoutes({ … })` (`content.ts`).
 * 3. The service does it, and throws what is in `core/errors.ts`; `failures` names the statuses of that.
 * 4. `tests/conformance/openapi.test.ts` compares an answer with the document; it fails while an endpoint has none.
 *
 * `import type` of the record is free for every module, `web/` and `bus/`; nobody declares a second one.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Dialect } from '../core/compat/index.ts'
import type { Schema, Static } from '../lib/schema/index.ts'
import type { RawBody } from './body.ts'
import type { GlobalPermission, Permission, Resource, ResourcePermission, Scope } from '../core/permissions.ts'

/** The listener an endpoint belongs to. */
export type Surface = (typeof surfaces)[number]

export const surfaces = ['auth', 'api', 'stream'] as const

/** The authenticated caller. */
export interface Principal {
  user: string
  /** True for every caller while access control is off, except for API keys with scopes. */
  isAdmin: boolean
  /**
   * How the caller authenticated; `none` while authentication is off; `control_socket` for requests over that socket.
   */
  method: 'none' | 'token' | 'api_key' | 'basic' | 'proxy' | 'control_socket'
  location?: 'header' | 'query' | 'cookie'
  /** Wire timestamp, tokens only. */
  expiry?: string
  tokenId?: string
  /** Tokens only: belongs to a running action, and expires when the run ends. */
  isServiceToken?: true
  apiKeyId?: string
  /** The scopes of an API key, or of the token of an action that the key has started. */
  scopes?: readonly Scope[]
}

/** The permissions of the caller. */
export interface Rights {
  /** @param resource absent for a resource permission: whether the caller has it on every resource */
  may(permission: Permission, resource?: Resource): boolean
  /** @throws PERMISSION_DENIED */
  require(permission: Permission, resource?: Resource): void
  /** @throws PERMISSION_DENIED */
  requireAdministrator(): void
  /**
   * Uids of the resources that grants name and on which the caller has the permission, each once. For types outside
   * packs and without an owner, these are all the caller's resources unless the permission is global.
   */
  named(permission: ResourcePermission): readonly string[]
  /** Set: lists show only executions and rules of this user (`rbac.permission_isolation`). */
  readonly onlyOf: string | undefined
}

/** Contract 00, 0.7. */
export interface QueryParameter {
  type: 'string' | 'boolean' | 'integer' | 'number' | 'array'
  description: string
  required?: boolean
}

export type QueryValue = string | boolean | number | string[] | undefined

/** A request that has passed the checks. */
export interface ApiRequest<
  Body = unknown,
  Query = Record<string, QueryValue>,
  Params extends Record<string, string> = Record<string, string>,
> {
  principal: Principal
  rights: Rights
  /** Path variables, percent-decoded. */
  params: Params
  /** The declared query parameters of the request, converted to their types. */
  query: Query
  /** The parsed body, checked against `body`; `undefined` on routes without one. */
  body: Body
  /** Set on routes that ask for it. */
  raw?: RawRequest
  headers: IncomingHttpHeaders
  requestId: string
  /** The client's address; a proxy's statement counts only when the proxy is trusted. */
  remoteAddress: string
  /** Whether the client is connected over TLS; proxies count likewise. */
  isSecure: boolean
  /**
   * Calls `listener` when the client has disconnected or the answer is complete, at once if it is so already. @returns a
   * function that unsubscribes
   */
  readonly onClose: (listener: () => void) => () => void
  /** Whose names the client uses; default ours. Only streams read it: other answers are translated. */
  dialect?: Dialect
}

/** The request before parsing, for routes that check its bytes. */
export interface RawRequest extends RawBody {
  /** Names and values alternate, as sent. */
  readonly headers: readonly string[]
}

/** An answer with its own status or headers. */
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

/** The sink of a streaming handler; nothing else writes to the response. */
export interface EventSink {
  /** Writes complete frames. False: the client is slow; wait for `drained` before writing more. */
  write(frames: string): boolean
  drained(): Promise<void>
  /** Bytes accepted but not yet sent to the client. */
  readonly queuedBytes: number
  readonly closed: AbortSignal
}

interface RouteBase<Path extends string, Query, Body> {
  surface: Surface
  method: 'get' | 'post' | 'put' | 'delete'
  /** Without version prefix, express syntax: `/executions/:id`. */
  path: Path
  /** Older paths that the route also answers. */
  aliases?: string[]
  /** For the OpenAPI document: one sentence. */
  summary: string
  query?: Query
  /** For the OpenAPI document only: request headers of this route and their purpose. */
  headers?: Record<string, string>
  /** For the OpenAPI document only: headers of successful answers. */
  answerHeaders?: Record<string, string>
  /** Schema of the request body; absent: the server does not read a body. */
  body?: Body
  /**
   * For the OpenAPI document only: schema of a body that the server reads but neither parses nor checks. Excludes
   * `body`.
   */
  rawBody?: Schema
  /** For the OpenAPI document only: the media type of `rawBody`; default JSON and forms. */
  rawBodyType?: string
  /** Error statuses of the handler itself. */
  failures?: number[]
}

/** The permission that a route requires. A route without one does not compile. */
export type Guard<R extends AnyRequest = ApiRequest> =
  | {
      /**
       * `'public'` needs no credential; `'authenticated'` accepts any; `'login'` exchanges a user name and a password
       * for a credential; `'administrator'` needs every permission.
       */
      permission: 'public' | 'authenticated' | 'login' | 'administrator' | GlobalPermission
    }
  | {
      permission: 'administrator'
      /** For programs that prove themselves; as below. */
      provesItself(request: Pick<R, 'params' | 'headers'>): boolean
    }
  | {
      /**
       * Without a resource, `inquiry_respond` covers every inquiry; with one, the inquiries of the action that asks.
       */
      permission: ResourcePermission | 'inquiry_respond'
      /**
       * The resource that the permission is required on. Its errors, such as not found, are the answer. On a route
       * without a body it runs in the same turn as the handler, so that both find the same; else before the body is
       * read.
       */
      resource(request: Omit<R, 'body'>): Resource
      /** A global permission that is required in addition. */
      alsoRequires?: GlobalPermission
      /**
       * Whether the request can prove itself, such as by a signature; default false. Then the server checks a
       * credential only if one is given, and does not check the permission. The handler decides by the proof and the
       * caller's rights; without a credential there are none. Errors are the answer, also with a credential.
       */
      provesItself?(request: Pick<R, 'params' | 'headers'>): boolean
    }
  | {
      permission: ResourcePermission
      /** As `resource`, where only the body names the resource. @param body fits the schema */
      resourceOfBody(body: R['body'], request: Omit<R, 'body'>): Resource
    }

interface JsonAnswer<R extends AnyRequest> {
  kind?: 'json'
  /** Default 200. */
  status?: number
  /** Schema of the answer, for the OpenAPI document. */
  response: Schema
  /** Successful answers with other statuses, for the OpenAPI document. */
  otherResponses?: Record<number, Schema>
  /** The route stops work, so it runs even when the server is at its limits. */
  isUrgent?: true
  /** Media type when the answer is a string or bytes instead of JSON. */
  mediaType?: string
  /** The request only asks, so it ignores an `Idempotency-Key`. */
  changesNothing?: true
  handler(request: R): unknown
  /**
   * Answers a repetition of a request whose change is stored and whose answer is not: the server stopped between the
   * two, or the answer was too long. Without it such a request is carried out again, except one with status 204. So a
   * route needs it whose second time would create something, or would be refused.
   *
   * @param subject `Unit.subject` of the change
   */
  answerAgain?(request: R, subject: string | undefined): unknown
}

interface StreamAnswer<R extends AnyRequest> {
  kind: 'stream'
  /** For the OpenAPI document only: the name of each event and the schema of its data. */
  events?: Record<string, Schema>
  /** Checks the request and may throw a normal JSON error. The returned function then writes until it resolves. */
  handler(request: R): Promise<(sink: EventSink) => Promise<void>> | ((sink: EventSink) => Promise<void>)
}

export type Queries = Record<string, QueryParameter>
type AnyRequest = ApiRequest<any, any, any> // a type bound: each request is narrower

export type JsonRoute<
  P extends string = string,
  Q extends Queries = Queries,
  B = Schema,
  R extends AnyRequest = ApiRequest,
> = RouteBase<P, Q, B> & JsonAnswer<R> & Guard<R>
export type StreamRoute<
  P extends string = string,
  Q extends Queries = Queries,
  B = Schema,
  R extends AnyRequest = ApiRequest,
> = RouteBase<P, Q, B> & StreamAnswer<R> & Guard<R>
export type Route = JsonRoute | StreamRoute

/** The names after `:` and `*` in a path. */
export type ParamsOf<P extends string> = string extends P ? Record<string, string> : { [N in ParamNames<P>]: string }
type ParamNames<P extends string> = P extends `${infer First}/${infer Rest}`
  ? ParamNames<First> | ParamNames<Rest>
  : P extends `:${infer Name}` | `*${infer Name}`
    ? Name
    : never

type ValueOf<T extends QueryParameter> = {
  string: string
  boolean: boolean
  integer: number
  number: number
  array: string[]
}[T['type']]

export type QueryOf<Q extends Queries> = string extends keyof Q
  ? Record<string, QueryValue>
  : { [N in keyof Q as Q[N] extends { required: true } ? N : never]: ValueOf<Q[N]> } & {
      [N in keyof Q as Q[N] extends { required: true } ? never : N]?: ValueOf<Q[N]>
    }

/** The request type of a handler, from its path, query parameters and body schema. */
export type RequestOf<P extends string, Q extends Queries, B> = ApiRequest<
  B extends Schema ? Static<B> : undefined,
  QueryOf<Q>,
  ParamsOf<P>
>

/**
 * Declares an endpoint that answers with a value. The types of `path`, `query` and `body` are those of its handler's
 * request.
 */
export function route<
  const P extends string,
  const Q extends Queries = {}, // eslint-disable-line
  B extends Schema | undefined = undefined,
>(declared: JsonRoute<P, Q, B, RequestOf<P, Q, B>>): Route {
  return declared as Route
}
