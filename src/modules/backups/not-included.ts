/** Parts of the server that a backup of the database does not contain. */
import { join, resolve } from 'node:path'
import { keysFolder, packFolders, type Config } from '../../config/index.ts'
import { surfaces } from '../../http/index.ts'
import type { NotIncluded } from './types.ts'

/** @param configFiles paths of the configuration files */
export function notIncluded(config: Config, configFiles: readonly string[]): NotIncluded[] {
  const { base_path: basePath } = config.system
  const { file_path: passwords = join(basePath, 'htpasswd') } = config.auth.backend_kwargs
  const keys = config.keyvalue.encryption_key_path
  return [
    ...configFiles.map((path) => ({ what: 'the configuration', path: resolve(path) })),
    { what: 'the keys, without which no secret in the backup can be read', path: keysFolder(config) },
    ...(keys === '' ? [] : [{ what: 'the keys of the datastore', path: keys }]),
    ...(config.auth.backend === 'flat_file' ? [{ what: 'the passwords of users', path: String(passwords) }] : []),
    { what: 'the definitions of roles', path: join(basePath, 'rbac') },
    ...packFolders(config).map((path) => ({ what: 'packs', path })),
    { what: 'the configurations of packs', path: join(basePath, 'configs') },
    { what: 'the overrides of packs', path: join(basePath, 'overrides') },
    { what: 'the known keys of other hosts', path: config.ssh_runner.known_hosts_file },
    ...surfaces.flatMap((surface) => {
      const { use_ssl: usesTls, cert, key } = config[surface]
      return usesTls ? [cert, key].map((path) => ({ what: `TLS of the ${surface} listener`, path })) : []
    }),
  ]
}
