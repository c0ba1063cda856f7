/** Where packs of the current folder go: the packs folder of its configuration, else the folder itself. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { readYamlDocument } from '../../lib/text/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import { cliProcess } from '../cli-process.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { chooseServerFiles, loadServerConfig } from '../operator-session.ts'
import { pathOf, shownPath } from './write-files.ts'

export interface PacksFolder {
  /** Absolute. */
  path: string
  /** Whether the server that is configured here reads packs in it. */
  isServed: boolean
}

/** For help texts. */
export const placeNote =
  'Without --path, packs are in the packs folder of the configuration here: `$SVC_CONFIG_FILE`, `./svc.conf` or, without either, `./svc_data/packs` if it exists. Without a configuration they are in the current folder.'

/** @param given the value of `--path` @throws CliFailure, ConfigProblems */
export async function findPacksFolder(given: string | undefined): Promise<PacksFolder> {
  const served = await findServedFolder()
  if (given === undefined) return { path: served ?? cliProcess().cwd(), isServed: served !== undefined }
  const path = pathOf(given)
  return { path, isServed: path === served }
}

/** A configuration of the whole machine is not meant: its packs are installed, not edited in place. */
async function findServedFolder(): Promise<string | undefined> {
  const files = await chooseServerFiles(undefined)
  const isNamed = files.length > 0
  if (isNamed && files[0] !== 'svc.conf' && files[0] !== cliProcess().env['SVC_CONFIG_FILE']) return undefined
  const { system_packs_base_path: folder } = (await loadServerConfig(undefined)).content
  return isNamed || existsSync(folder) ? folder : undefined
}

/**
 * The folder of a pack that exists: the current folder, else the one in the packs folder.
 *
 * @throws CliFailure (2)
 */
export async function findPack(
  pack: string,
  given: string | undefined,
): Promise<{ folder: string; isServed: boolean }> {
  const current = cliProcess().cwd()
  const packs = await findPacksFolder(given)
  const folder = join(packs.path, pack)
  if (given === undefined && (await refOf(current)) === pack) {
    return { folder: current, isServed: packs.isServed && folder === current }
  }
  if (!existsSync(join(folder, 'pack.yaml'))) {
    throw new CliFailure(
      `There is no pack "${pack}" in ${shownPath(packs.path)}. Create it with: svc pack create ${pack}\nFor a pack in another folder, use --path <folder that has the pack>.`,
      exitCodes.usage,
    )
  }
  return { folder, isServed: packs.isServed }
}

/** The reference of the pack in a folder; undefined: there is none, or nobody can read it. */
async function refOf(folder: string): Promise<string | undefined> {
  const text = await readFile(join(folder, 'pack.yaml'), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const read = readYamlDocument(text)
  const manifest = 'value' in read ? read.value : undefined
  if (!isObject(manifest)) return undefined
  const { ref } = manifest
  return typeof ref === 'string' && ref !== '' ? ref : basename(folder)
}
