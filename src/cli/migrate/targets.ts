/** How each kind of record is read from the server and written to it: through its API, as everybody does. */
import { microsOf, nowMicros } from '../../core/time.ts'
import type { Fields, RecordKind } from '../../migrate/index.ts'
import { segment, type Query } from '../connection/client.ts'
import { listIn, recordIn, textOrEmpty } from '../connection/responses.ts'
import { HttpFailure } from '../failures.ts'
import type { Json } from '../output/print.ts'
import type { Session } from '../session.ts'

/** Expiry times are made from seconds left, so that two of them may differ by a moment. */
const SAME_MOMENT_MICROS = 2_000_000
const PAGE_SIZE = 100

/** No record at all can be found. */
const isAboutServer = ({ code }: HttpFailure): boolean => code === 'ROUTE_UNKNOWN' || code === 'AUTHENTICATION_OFF'

export interface Target {
  /** The record on the server; undefined: there is none. */
  read(name: string, desired: Fields): Promise<Json | undefined>
  /** The record on the server, with what differs only by how it was stored as it is desired. */
  alike?(current: Json, desired: Fields): Json
  create(name: string, desired: Fields): Promise<void>
  replace(name: string, desired: Fields, current: Json): Promise<void>
}

/** Kinds that are files of the site, not records: `files.ts`. */
export type ApiKind = Exclude<RecordKind, 'role' | 'role_assignment' | 'group_mapping'>

export function createTargets(session: Session): Record<ApiKind, Target> {
  const { client } = session

  async function find(path: string, query: Query = {}): Promise<Json | undefined> {
    try {
      return recordIn(await client.call('GET', path, { query }))
    } catch (error) {
      if (error instanceof HttpFailure && error.status === 404 && !isAboutServer(error)) return undefined
      throw error
    }
  }

  /** Records that are found by their reference, and made and replaced whole. */
  const ofDefinitions = (path: string): Target => ({
    read: (name) => find(`${path}/${segment(name)}`, path === '/rules' ? { show_secrets: true } : {}),
    async create(_name, desired) {
      await client.call('POST', path, { body: desired })
    },
    async replace(name, desired) {
      await client.call('PUT', `${path}/${segment(name)}`, { body: desired })
    },
  })

  return {
    trigger_type: ofDefinitions('/triggertypes'),
    action: ofDefinitions('/actions'),
    rule: ofDefinitions('/rules'),
    action_alias: ofDefinitions('/actionalias'),
    policy: ofDefinitions('/policies'),
    sensor: ofDefinitions('/sensortypes'),
    key: keyTarget(session, find),
    api_key: apiKeyTarget(session),
    user: {
      read: (name) => find(`/users/${segment(name)}`),
      async create(_name, desired) {
        await client.call('POST', '/users', { body: desired })
      },
      async replace(name, desired) {
        await client.call('PUT', `/users/${segment(name)}`, { body: desired })
      },
    },
    config: {
      read: (name) => find(`/configs/${segment(name)}`, { show_secrets: true }),
      async create(name, desired) {
        await client.call('PUT', `/configs/${segment(name)}`, { body: desired['values'] })
      },
      async replace(name, desired) {
        await client.call('PUT', `/configs/${segment(name)}`, { body: desired['values'] })
      },
    },
  }
}

type Find = (path: string, query?: Query) => Promise<Json | undefined>

function keyTarget({ client }: Session, find: Find): Target {
  async function put(desired: Fields): Promise<void> {
    const { expires, ...body } = desired
    const ttl =
      typeof expires === 'string' ? { ttl: Math.max(1, Math.ceil((microsOf(expires) - nowMicros()) / 1_000_000)) } : {}
    // The value must not reach a message of the client: only the name is in the path.
    await client.call('PUT', `/keys/${segment(textOrEmpty(desired['name']))}`, { body: { ...body, ...ttl } })
  }
  return {
    async read(_name, desired) {
      const { name, scope, user } = desired
      const query = { scope: textOrEmpty(scope), decrypt: true, ...(typeof user === 'string' ? { user } : {}) }
      const record = await find(`/keys/${segment(textOrEmpty(name))}`, query)
      if (record === undefined) return undefined
      const { expire_timestamp: expiry, ...rest } = record
      return typeof expiry === 'string' ? { ...rest, expires: expiry } : rest
    },
    alike(current, { expires }) {
      const { expires: expiry } = current
      if (typeof expiry !== 'string' || typeof expires !== 'string') return current
      const isSame = Math.abs(microsOf(expiry) - microsOf(expires)) <= SAME_MOMENT_MICROS
      return isSame ? { ...current, expires } : current
    },
    create: (_name, desired) => put(desired),
    replace: (_name, desired) => put(desired),
  }
}

/** Found by its digest, since ids may be absent in exports. */
function apiKeyTarget({ client }: Session): Target {
  let known: Promise<Map<string, Json>> | undefined
  async function readAll(): Promise<Map<string, Json>> {
    const found = new Map<string, Json>()
    for (let offset = 0; ; offset += PAGE_SIZE) {
      const page = listIn(
        await client.call('GET', '/apikeys', { query: { limit: PAGE_SIZE, offset, show_secrets: true } }),
      )
      for (const record of page) found.set(textOrEmpty(record['key_hash']), record)
      if (page.length < PAGE_SIZE) return found
    }
  }
  return {
    async read(_name, desired) {
      known ??= readAll()
      return (await known).get(textOrEmpty(desired['key_hash']))
    },
    async create(_name, desired) {
      await client.call('POST', '/apikeys', { body: desired })
    },
    async replace(_name, { user, metadata, enabled }, current) {
      const id = textOrEmpty(current['id'])
      await client.call('PUT', `/apikeys/${segment(id)}`, { body: { user, metadata, enabled } })
    },
  }
}
