/** Folders of a StackStorm installation, as packs write them. */
import { join, normalize } from 'node:path'

const theirFolder = /^\/opt\/stackstorm\/(packs|configs|virtualenvs)(?=\/|$)/

/**
 * A path below `/opt/stackstorm/packs`, `configs` or `virtualenvs` as one below our base path.
 *
 * @returns undefined: it is another path, or leads out of these folders
 */
export function pathHere(basePath: string, path: string): string | undefined {
  const clean = normalize(path)
  const [, folder] = theirFolder.exec(clean) ?? []
  return folder === undefined ? undefined : join(basePath, clean.slice('/opt/stackstorm/'.length))
}

const theirPython = /^\/opt\/stackstorm\/st2\/bin\/python[\d.]*$/

/** Whether a path is the Python that StackStorm itself runs with: scripts of packs name it in their first line. */
export const isTheirPython = (path: string): boolean => theirPython.test(path)

/** `/opt/stackstorm/packs/<pack>/actions/<file>` relative to the actions of the pack; another path as it is. */
export function entryPointHere(pack: string, entryPoint: string): string {
  const actions = `/opt/stackstorm/packs/${pack}/actions/`
  if (!entryPoint.startsWith('/opt/stackstorm/')) return entryPoint
  const clean = normalize(entryPoint)
  return clean.startsWith(actions) ? clean.slice(actions.length) : entryPoint
}
