/** Content of packs that clients read, replace and delete one by one: endpoints and changes that several kinds share. */
import { contentNotFound, systemPackFixed } from '../core/errors.ts'
import { isId } from '../core/ids.ts'
import { defaultPack } from '../core/pack-content.ts'
import type { Permission, Resource, ResourcePermission } from '../core/permissions.ts'
import { commitPlan, type Database, type Unit } from '../db/index.ts'
import { Type, type Schema, type Static } from '../lib/schema/index.ts'
import type { LogFields } from '../lib/log/index.ts'
import { aboutCaller } from './caller.ts'
import type { ApiRequest, Route } from './route.ts'

/** Who asks, from where, and what they may do. */
export type ContentCaller = Pick<ApiRequest, 'principal' | 'rights' | 'requestId' | 'remoteAddress'>

/** By id when it looks like one, else by reference. @throws CONTENT_NOT_FOUND */
export function contentAt<T>(
  store: { find(id: string): T | undefined; findByRef(ref: string): T | undefined },
  refOrId: string,
): T {
  const found = (isId(refOrId) ? store.find(refOrId) : undefined) ?? store.findByRef(refOrId)
  if (found === undefined) throw contentNotFound(refOrId)
  return found
}

interface Endpoint {
  permission: ResourcePermission
  summary: string
}

/** `GET`, `PUT` and, where it is given, `DELETE` of `<path>/:ref_or_id`. */
export function contentRoutes<T extends { ref: string }, B extends Schema>({
  path,
  record,
  request: body,
  resourceOf,
  service,
  toRecord,
  ...endpoints
}: {
  /** Such as `/policies`. */
  path: string
  record: Schema
  /** Body of `PUT`. */
  request: B
  readonly resourceOf: (ref: string) => Resource
  service: {
    get(refOrId: string): T
    update(caller: ContentCaller, refOrId: string, given: Static<B>): Promise<T>
    delete?(caller: ContentCaller, refOrId: string): Promise<void>
  }
  /** For clients. */
  readonly toRecord: (content: T) => unknown
  get: Endpoint
  put: Endpoint
  delete?: Endpoint
}): Route[] {
  const idIn = ({ params }: Pick<ApiRequest, 'params'>): string => params['ref_or_id'] ?? ''
  const common = {
    surface: 'api' as const,
    path: `${path}/:ref_or_id`,
    resource: (request: Pick<ApiRequest, 'params'>) => resourceOf(service.get(idIn(request)).ref),
  }
  const routes: Route[] = [
    {
      ...common,
      ...endpoints.get,
      method: 'get',
      response: record,
      failures: [404],
      handler: (request) => toRecord(service.get(idIn(request))),
    },
    {
      ...common,
      ...endpoints.put,
      method: 'put',
      body,
      response: record,
      failures: [400, 403, 404, 409, 503],
      // The body has passed its schema.
      handler: async (request) => toRecord(await service.update(request, idIn(request), request.body as Static<B>)),
      answerAgain: (request, id = idIn(request)) => toRecord(service.get(id)),
    },
  ]
  if (endpoints.delete !== undefined) {
    routes.push({
      ...common,
      ...endpoints.delete,
      method: 'delete',
      status: 204,
      response: Type.Unknown(),
      failures: [400, 404, 409, 503],
      async handler(request) {
        await service.delete?.(request, idIn(request))
      },
    })
  }
  return routes
}

interface Named {
  pack: string
  name: string
}

const systemPack = 'core'

export interface ContentChanges<T, G> {
  /** @throws SYSTEM_PACK_FIXED, and what filling and the plan throw */
  create(caller: ContentCaller, given: G): Promise<T>
  /** @throws CONTENT_NOT_FOUND, PERMISSION_DENIED, CONFLICT, and what `create` throws */
  update(caller: ContentCaller, refOrId: string, given: G): Promise<T>
  /** @throws CONTENT_NOT_FOUND, PERMISSION_DENIED, SYSTEM_PACK_FIXED, CONFLICT */
  delete(caller: ContentCaller, refOrId: string): Promise<void>
}

/** What clients may do with content that is a record alone. Each change is planned on what stands. */
export function createContentChanges<
  T extends Named & { id: string; ref: string; metadata_file?: string },
  D extends Named & { metadata_file?: string },
  G,
>({
  kind,
  permissions,
  database,
  get,
  fill,
  resourceOf,
  planWrite,
  planDelete,
  audit,
}: {
  /** For messages: `Policy`. */
  kind: string
  permissions: { modify: ResourcePermission; delete: ResourcePermission; create: Permission }
  database: Pick<Database, 'write'>
  readonly get: (refOrId: string) => T
  /** @param pack if what is given names none @throws what is wrong with it */
  readonly fill: (given: G, pack: string) => D | Promise<D>
  /** @param permission of which the resource is asked for; undefined: it is global */
  readonly resourceOf: (ref: string, permission: Permission) => Resource | undefined
  /** @param before undefined: it is new @throws NAME_TAKEN */
  readonly planWrite: (before: T | undefined, definition: D) => { result: T; unit: Unit }
  readonly planDelete: (seen: T) => Unit
  readonly audit: (what: 'created' | 'updated' | 'deleted', content: T, by: LogFields) => void
}): ContentChanges<T, G> {
  const refOf = ({ pack, name }: Named): string => `${pack}.${name}`
  const nameOf = (ref: string): string => `${kind} "${ref}"`

  function refuseSystemPack(content: Named): void {
    if (content.pack === systemPack) throw systemPackFixed(kind, refOf(content))
  }

  return {
    async create(caller, given) {
      const definition = await fill(given, defaultPack)
      refuseSystemPack(definition)
      const made = await commitPlan(database, () => planWrite(undefined, definition), nameOf(refOf(definition)))
      audit('created', made, aboutCaller(caller))
      return made
    },

    async update(caller, refOrId, given) {
      const { id, pack } = get(refOrId)
      const definition = await fill(given, pack)
      const { create, modify } = permissions
      const plan = (): { result: T; unit: Unit } => {
        const before = get(id)
        caller.rights.require(modify, resourceOf(before.ref, modify))
        refuseSystemPack(before)
        const ref = refOf(definition)
        if (ref !== before.ref) caller.rights.require(create, resourceOf(ref, create))
        refuseSystemPack(definition)
        const { metadata_file: file } = before
        return planWrite(before, file === undefined ? definition : { ...definition, metadata_file: file })
      }
      const changed = await commitPlan(database, plan, nameOf(refOrId))
      audit('updated', changed, aboutCaller(caller))
      return changed
    },

    async delete(caller, refOrId) {
      const { id } = get(refOrId)
      const plan = (): { result: T; unit: Unit } => {
        const seen = get(id)
        caller.rights.require(permissions.delete, resourceOf(seen.ref, permissions.delete))
        refuseSystemPack(seen)
        return { result: seen, unit: planDelete(seen) }
      }
      const gone = await commitPlan(database, plan, nameOf(refOrId))
      audit('deleted', gone, aboutCaller(caller))
    },
  }
}
