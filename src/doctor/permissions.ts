/** Who can read and write what the server keeps. */
import { existsSync, readdirSync, statSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { optionEntries } from '../config/index.ts'
import { quote } from '../lib/process/index.ts'
import { ok, problem, skipped, warning, type Check, type Patient, type Result } from './check.ts'
import { shown } from '../lib/text/index.ts'

const OTHERS = 0o007
const OTHERS_WRITE = 0o002

export const permissions: Check = {
  name: 'permissions',
  look(patient) {
    const { config } = patient.loaded
    const { base_path: basePath } = config.system
    const base = statSync(basePath, { throwIfNoEntry: false })
    const ofFiles = configurationFiles(patient)
    if (base === undefined) return ofFiles.length > 0 ? ofFiles : [skipped(`${basePath} is made at the first start.`)]
    // The server, or what it will run as: the owner of its folder.
    const owner = patient.running === undefined ? base.uid : statSync(`/proc/${patient.running.pid}`).uid
    const found = [
      ...closedFolder(basePath, base, owner),
      ...secretsOf(patient).flatMap((path) => secretFile(path, owner)),
      ...ofFiles,
    ]
    return found.length === 0
      ? [ok(`What is in ${basePath} belongs to the account of the server, and no other account can read it.`)]
      : found
  },
}

function closedFolder(path: string, stats: Stats, owner: number): Result[] {
  return [
    ...foreign(path, stats, owner),
    ...((stats.mode & OTHERS) === 0
      ? []
      : [
          (stats.mode & OTHERS_WRITE) === 0
            ? warning(`Other accounts can look into ${path}.`, `chmod o-rwx ${quote(path)}`)
            : problem(`Other accounts can write into ${path}.`, `chmod o-rwx ${quote(path)}`),
        ]),
  ]
}

function secretFile(path: string, owner: number): Result[] {
  const stats = statSync(path)
  return [
    ...foreign(path, stats, owner),
    ...((stats.mode & OTHERS) === 0
      ? []
      : [problem(`Other accounts can read ${path} or write to it.`, `chmod o-rwx ${quote(path)}`)]),
  ]
}

function foreign(path: string, stats: Stats, owner: number): Result[] {
  if (stats.uid === owner) return []
  return [
    problem(
      `${path} belongs to the account ${stats.uid}, and the server is run by the account ${owner}.`,
      `chown ${owner} ${quote(path)}`,
    ),
  ]
}

/** Those that exist. */
function secretsOf({ loaded: { config } }: Patient): string[] {
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

/** Whoever can write one decides what the server does; and one with secrets is to be read by nobody else. */
function configurationFiles({ loaded: { files, sources } }: Patient): Result[] {
  return files.flatMap((file) => {
    const { mode } = statSync(file)
    if ((mode & OTHERS_WRITE) !== 0) {
      return [problem(`Other accounts can write to ${file}.`, `chmod o-w ${quote(file)}`)]
    }
    const secret = optionEntries.find(
      ({ key, option }) => option.secret && sources[key]?.startsWith(`${shown(file)}:`) === true,
    )
    if (secret === undefined || (mode & OTHERS) === 0) return []
    return [
      problem(
        `Other accounts can read ${file}, which has ${secret.key}.`,
        `chmod o-rwx ${quote(file)}; its group should be that of the server.`,
      ),
    ]
  })
}
