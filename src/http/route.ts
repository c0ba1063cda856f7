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
 *    `query` and `body`; a cast is a sign of a schema that says too little. Lists are `listEndpoint({ … })` (`list.ts`).
 * 3. The service does it, and throws what is in `core/errors.ts`; `failures` names the statuses of that.
 * 4. `tests/conformance/openapi.test.ts` compares an answer with the document; it fails while an endpoint has none.
 *
 * `import type` of the record is free for every module, `web/` and `bus/`; nobody declares a second one.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Schema, Static } from '../lib/schema/index.ts'
import type { RawBody } from './body.ts'
import type { GlobalPermission, Permission, Resource, ResourcePermission, Scope } from '../core/permissions.ts'

/** The listener an endpoint belongs to. */
export type Surface = (typeof surfaces)[number]

export const surfaces = ['auth', 'api', 'stream'] as const

/** Who is calling. */
export interface Principal {
  user: string
  /** Without access control everybody is, except by an API key with scopes. */
  isAdmin: boolean
  /** How the caller proved who it is; `none` while authentication is off; `control_socket` by being able to open that. */
  method: 'none' | 'token' | 'api_key' | 'basic' | 'proxy' | 'control_socket'
  location?: 'header' | 'query' | 'cookie'
  /** Wire timestamp, tokens only. */
  expiry?: string
  tokenId?: string
  /** Tokens only: it is of an action that runs, and ends with the run. */
  isServiceToken?: true
  apiKeyId?: string
  /** Of an API key, and of the token of an action that it has started: what they are limited to. */
  scopes?: readonly Scope[]
}

/** What the caller may do. */
export interface Rights {
  /** @param resource absent, for a permission that is needed on one: whether on every resource there can be */
  may(permission: Permission, resource?: Resource): boolean
  /** @throws PERMISSION_DENIED */
  require(permission: Permission, resource?: Resource): void
  /** @throws PERMISSION_DENIED */
  requireAdministrator(): void
  /**
   * Uids of the resources that grants name and on which the caller has the permission, each once. Of what is neither in
   * packs nor has an owner that is all, for whoever may not do it everywhere.
   */
  named(permission: ResourcePermission): readonly string[]
  /** Given: lists hold only executions and rules of this user (`rbac.permission_isolation`). */
  readonly onlyOf: string | undefined
}

/** Contract 00, 0.7. */
export interface QueryParameter {
  type: 'string' | 'boolean' | 'integer' | 'number' | 'array'
  description: string
  required?: boolean
}

export type QueryValue = string | boolean | number | string[] | undefined

/** A checked request. */
export interface ApiRequest<
  Body = unknown,
  Query = Record<string, QueryValue>,
  Params extends Record<string, string> = Record<string, string>,
> {
  principal: Principal
  rights: Rights
  /** Path variables, percent-decoded. */
  params: Params
  /** Declared query parameters that were given, converted to their declared type. */
  query: Query
  /** The parsed body, checked against `body`; `undefined` on routes without one. */
  body: Body
  /** Of routes that ask for it. */
  raw?: RawRequest
  headers: IncomingHttpHeaders
  requestId: string
  /** Address of the caller, believed from a proxy only when that is trusted. */
  remoteAddress: string
  /** Whether the caller is connected over TLS; believed likewise. */
  isSecure: boolean
}

/** A request as it came, for routes that have to look at it before anything is made of it. */
export interface RawRequest extends RawBody {
  /** Names and values in turn, as sent. */
  readonly headers: readonly string[]
  /** Calls when the client has gone, or has its answer. @returns stops that */
  onClose(listener: () => void): () => void
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

interface RouteBase<Path extends string, Query, Body> {
  surface: Surface
  method: 'get' | 'post' | 'put' | 'delete'
  /** Without version prefix, express syntax: `/executions/:id`. */
  path: Path
  /** Old names that answer too. */
  aliases?: string[]
  /** For the OpenAPI document: one sentence. */
  summary: string
  query?: Query
  /** For the OpenAPI document alone: headers that are of meaning here, with what for. */
  headers?: Record<string, string>
  /** For the OpenAPI document alone: headers of successful answers. */
  answerHeaders?: Record<string, string>
  /** Schema of the request body; absent: the body is not read. */
  body?: Body
  /** For the OpenAPI document alone: of a body that is read, but neither parsed nor checked. Such a route has no `body`. */
  rawBody?: Schema
  /** Statuses besides the successful one that the handler itself may cause. */
  failures?: number[]
}

/** What a caller needs. A route that does not say does not compile. */
export type Guard<R extends AnyRequest = ApiRequest> =
  | {
      /**
       * `'public'` needs no credential and must be written out; `'authenticated'` any; `'login'` is for exchanging a user
       * name and a password for a credential; `'administrator'` somebody who may do everything.
       */
      permission: 'public' | 'authenticated' | 'login' | 'administrator' | GlobalPermission
    }
  | {
      permission: 'administrator'
      /** For programs with a credential of their own; as below. */
      provesItself(request: Pick<R, 'params' | 'headers'>): boolean
    }
  | {
      /** Who may respond to every inquiry is said without a resource, and who to one by the action that asks. */
      permission: ResourcePermission | 'inquiry_respond'
      /**
       * What the permission is needed on; a throw, such as not found, is the answer. Without a body to be read it is
       * called in the same turn as the handler, so that what this finds is what the handler finds; else before the body
       * is read.
       */
      resource(request: Omit<R, 'body'>): Resource
      /** Needed as well, whatever the resource. */
      besides?: GlobalPermission
      /**
       * Whether this request can prove itself, such as by a signature, whoever calls; default: none can. Then a credential
       * is looked at only if one is given, the permission is not asked for, and the handler has to decide by proof and
       * rights; somebody without a credential has none. A throw is the answer, also to who has one.
       */
      provesItself?(request: Pick<R, 'params' | 'headers'>): boolean
    }
  | {
      permission: ResourcePermission
      /** The same, where the body says more about it. @param body fits the schema */
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
  /** It ends work, so it is carried out however much is under way. */
  isUrgent?: true
  /** Media type when the answer is a string or bytes instead of JSON. */
  mediaType?: string
  handler(request: R): unknown
}

interface StreamAnswer<R extends AnyRequest> {
  kind: 'stream'
  /** For the OpenAPI document alone: the name of each event, and the schema of its data. */
  events?: Record<string, Schema>
  /** Checks the request (a throw is a normal JSON error); the returned function then writes until it resolves. */
  handler(request: R): Promise<(sink: EventSink) => Promise<void>> | ((sink: EventSink) => Promise<void>)
}

export type Queries = Record<string, QueryParameter>
type AnyRequest = ApiRequest<any, any, any> // a bound: each is narrower

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

/** The request that a route's handler gets, of its path, its query parameters and the schema of its body. */
export type RequestOf<P extends string, Q extends Queries, B> = ApiRequest<
  B extends Schema ? Static<B> : undefined,
  QueryOf<Q>,
  ParamsOf<P>
>

/** One endpoint that answers with a value; `path`, `query` and `body` say what its handler gets. */
export function route<
  const P extends string,
  const Q extends Queries = {}, // eslint-disable-line
  B extends Schema | undefined = undefined,
>(declared: JsonRoute<P, Q, B, RequestOf<P, Q, B>>): Route {
  return declared as Route
}
