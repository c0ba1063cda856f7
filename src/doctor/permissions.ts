/** Access permissions of the files of the server. */
import { existsSync, readdirSync, statSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { optionEntries } from '../config/index.ts'
import { quote } from '../lib/process/index.ts'
import { ok, failedCheck, skipped, warning, type HealthCheck, type CheckContext, type Result } from './check.ts'
import { shown } from '../lib/text/index.ts'

const OTHERS = 0o007
const OTHERS_WRITE = 0o002

export const permissions: HealthCheck = {
  name: 'permissions',
  run(context) {
    const { config } = context.loaded
    const { base_path: basePath } = config.system
    const base = statSync(basePath, { throwIfNoEntry: false })
    const ofFiles = checkConfigurationFiles(context)
    if (base === undefined)
      return ofFiles.length > 0
        ? ofFiles
        : [skipped(`${basePath} does not exist yet; the server creates it at the first start.`)]
    // The account of the running server, or the owner of its directory.
    const owner = context.running === undefined ? base.uid : statSync(`/proc/${context.running.pid}`).uid
    const found = [
      ...checkFolder(basePath, base, owner),
      ...secretsOf(context).flatMap((path) => checkSecretFile(path, owner)),
      ...ofFiles,
    ]
    return found.length === 0 ? [ok(`Only the account of the server can access ${basePath}.`)] : found
  },
}

function checkFolder(path: string, stats: Stats, owner: number): Result[] {
  return [
    ...checkOwner(path, stats, owner),
    ...((stats.mode & OTHERS) === 0
      ? []
      : [
          (stats.mode & OTHERS_WRITE) === 0
            ? warning(`Other accounts can list or read ${path}.`, `chmod o-rwx ${quote(path)}`)
            : failedCheck(`Other accounts can write to ${path}.`, `chmod o-rwx ${quote(path)}`),
        ]),
  ]
}

function checkSecretFile(path: string, owner: number): Result[] {
  const stats = statSync(path)
  return [
    ...checkOwner(path, stats, owner),
    ...((stats.mode & OTHERS) === 0
      ? []
      : [failedCheck(`Other accounts can read ${path} or write to it.`, `chmod o-rwx ${quote(path)}`)]),
  ]
}

function checkOwner(path: string, stats: Stats, owner: number): Result[] {
  if (stats.uid === owner) return []
  return [
    failedCheck(
      `${path} belongs to the account ${stats.uid}, but the server runs as the account ${owner}.`,
      `chown ${owner} ${quote(path)}`,
    ),
  ]
}

/** Those that exist. */
function secretsOf({ loaded: { config } }: CheckContext): string[] {
  const { base_path: basePath } = config.system
  const keys = join(basePath, 'keys')
  const passwords = config.auth.backend_kwargs['file_path']
  const paths = [
    ...['', '-wal', '-shm'].map((suffix) => `${config.database.path}${suffix}`),
    keys,
    ...(existsSync(keys) ? readdirSync(keys).map((name) => join(keys, name)) : []),
    config.keyvalue.encryption_key_path,
    typeof passwords === 'string' ? passwords : join(basePath, 'htpasswd'),
    join(basePath, 'initial-admin-password'),
    config.log.audit_file,
  ]
  return [...new Set(paths)].filter((path) => path !== '' && existsSync(path))
}

/** Only the owner may write a configuration file, or read one with secrets. */
function checkConfigurationFiles({ loaded: { files, sources } }: CheckContext): Result[] {
  return files.flatMap((file) => {
    const { mode } = statSync(file)
    if ((mode & OTHERS_WRITE) !== 0) {
      return [failedCheck(`Other accounts can write to ${file}.`, `chmod o-w ${quote(file)}`)]
    }
    const secret = optionEntries.find(
      ({ key, option }) => option.secret && sources[key]?.startsWith(`${shown(file)}:`) === true,
    )
    if (secret === undefined || (mode & OTHERS) === 0) return []
    return [
      failedCheck(
        `Other accounts can read ${file}, which contains ${secret.key}.`,
        `chmod o-rwx ${quote(file)}; give the file the group of the server.`,
      ),
    ]
  })
}
