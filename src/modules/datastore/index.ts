/** Datastore: key-value pairs of the system and of users. Secrets are encrypted. */
import type { Database, Unit } from '../../db/index.ts'
import { noCompat, type Compat } from '../../core/compat/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import { isAppError } from '../../core/errors.ts'
import type { Rights } from '../../http/index.ts'
import type { Log } from '../../lib/log/index.ts'
import type { Module } from '../../core/module.ts'
import { createKeyRoutes } from './routes.ts'
import { createDatastoreService } from './service.ts'
import { createKeyStore } from './store.ts'
import { createTemplates } from './templates.ts'
import type { DatastorePorts, DatastoreTemplates } from './ports.ts'
import type { Scope } from '../../core/permissions.ts'

export interface Datastore extends Module, DatastoreTemplates {
  /** Deletes the items of a deleted user, because the name can be reused. */
  planUserDeleted(user: string): Unit
}

export interface DatastoreDeps extends DatastorePorts {
  database: Database
  log: Log
  encryption: Encryption
  /** Permissions of a user within the scopes of a credential. */
  readonly rightsOf: (user: string, scopes?: readonly Scope[]) => Rights
  settings: {
    /** `rbac.enable` */
    accessControl: boolean
    /** `api.max_page_size` */
    maxPageSize: number
    /** Default: our names alone. */
    compat?: Compat
  }
}

const SWEEP_SECONDS = 60

export function createDatastore(deps: DatastoreDeps): Datastore {
  const { database, log, encryption, planEvent, settings } = deps
  const store = createKeyStore(database)
  const service = createDatastoreService({ database, store, encryption, log, planEvent })
  const templates = createTemplates({
    store,
    service,
    rightsOf: deps.rightsOf,
    isAccessControlled: settings.accessControl,
    compat: settings.compat ?? noCompat,
  })

  /** Reports a lost key at start, before an action fails. */
  function warnOfLostKey(): void {
    const item = store.findEncrypted()
    if (item === undefined) return
    try {
      service.reveal(item)
    } catch (error) {
      if (!isAppError(error)) throw error
      log.error('datastore.key_lost', `Could not decrypt datastore secrets. ${error.message}`)
    }
  }

  return {
    name: 'datastore',
    templates: (reader) => templates.templates(reader),
    read: (reader, key, decrypt) => templates.read(reader, key, decrypt),
    planUserDeleted: (user) => ({ steps: [store.deleteOfUser(user)], facts: [] }),
    routes: createKeyRoutes({
      service,
      store,
      isAccessControlled: settings.accessControl,
      maxPageSize: settings.maxPageSize,
    }),
    maintenance: [
      { name: 'expired key-value pairs', everySeconds: SWEEP_SECONDS, run: (signal) => service.sweep(signal) },
    ],
    async start() {
      warnOfLostKey()
    },
    async reload() {
      await encryption.reload()
      warnOfLostKey()
    },
  }
}
