/** What several parts of the server need of the same rule, made once. */
import { join } from 'node:path'
import { createCompat, type Compat } from '../core/compat/index.ts'
import type { Config } from './options.ts'

export interface CommonSettings {
  /** Absolute `system.base_path`. */
  basePath: string
  /** `system_user.user`: in whose name the server acts by itself. */
  systemUser: string
  /** `api.max_page_size`: most records on one page of a list. */
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets`: secrets in answers are masked. */
  maskSecrets: boolean
  /** `actionrunner.queue_limit`: most executions, and most trigger instances, that may wait. */
  queueLimit: number
  /** The names of StackStorm that are accepted. */
  compat: Compat
}

export function commonSettings(config: Config): CommonSettings {
  return {
    basePath: config.system.base_path,
    systemUser: config.system_user.user,
    maxPageSize: config.api.max_page_size,
    maskSecrets: config.api.mask_secrets && config.log.mask_secrets,
    queueLimit: config.actionrunner.queue_limit,
    compat: createCompat(config.compat.stackstorm),
  }
}

/** How the database is opened. */
export function databaseSettings({ database, backup }: Pick<Config, 'database' | 'backup'>): {
  path: string
  synchronous: Config['database']['synchronous']
  reserveBytes: number
  backupDirectory?: string
} {
  return {
    path: database.path,
    synchronous: database.synchronous,
    reserveBytes: database.reserve_bytes,
    ...(backup.before_migration ? { backupDirectory: backup.directory } : {}),
  }
}

/** Packs are looked for in these folders, in this order. */
export function packFolders({ content }: Pick<Config, 'content'>): string[] {
  return [content.system_packs_base_path, ...content.packs_base_paths]
}

/** The keys that the server makes for itself. */
export function keysFolder({ system }: Pick<Config, 'system'>): string {
  return join(system.base_path, 'keys')
}
