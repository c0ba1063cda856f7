/** What the configuration says about packs. */
import { join } from 'node:path'
import { overridesFolder } from './overrides.ts'
import { packFolders, type CommonSettings, type Config } from '../../config/index.ts'

export interface PacksSettings {
  /** `content.system_packs_base_path`, then those of `content.packs_base_paths`; absolute. */
  basePaths: readonly string[]
  /** Where the configurations of the site are. Absolute. */
  configsPath: string
  /** Which content of packs is enabled here. Absolute. */
  overridesPath: string
  /** What of the program has to be on disk is kept here. Absolute. */
  cachePath: string
  /** Other revisions of packs are kept here. Absolute. */
  versionsPath: string
  /** `content.index_url` */
  indexUrls: readonly string[]
  /** `content.watch` */
  watch: boolean
  maxPageSize: number
  /** `api.mask_secrets` and `log.mask_secrets` */
  maskSecrets: boolean
}

export function packsSettings(config: Pick<Config, 'content'>, common: CommonSettings): PacksSettings {
  return {
    ...common,
    basePaths: packFolders(config),
    configsPath: join(common.basePath, 'configs'),
    overridesPath: join(common.basePath, overridesFolder),
    cachePath: join(common.basePath, 'cache'),
    versionsPath: join(common.basePath, 'versions'),
    indexUrls: config.content.index_url,
    watch: config.content.watch,
  }
}
