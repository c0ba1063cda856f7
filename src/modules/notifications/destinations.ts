/** All destinations: files of the site and of packs. They live in memory, because the files are the truth. */
import { join } from 'node:path'
import type { Log } from '../../lib/log/index.ts'
import { describeProblem, listFiles, problemAt, readMetadataFile, type FileProblem } from '../../lib/text/index.ts'
import { readDestination, type Destination } from './definition.ts'

const FOLDER = 'notifications'
/** Of the site, and of each pack. */
const MAX_FILES = 200
const MAX_FILE_BYTES = 65_536
const MAX_PACKS = 1000

export interface Destinations {
  /**
   * @param name of the site's, or `<pack>.<name>`
   * @param pack whose own destination counts when the site has none of that name
   */
  find(name: string, pack?: string): Destination | undefined
  /** In the order of names. */
  list(): Destination[]
  /** Reads the files of the site. Broken ones are logged; what they said before is forgotten. */
  readSite(): Promise<void>
  /** Reads the files of a pack. @returns what is wrong with them, warnings included */
  usePack(pack: string, folder: string): Promise<FileProblem[]>
  forgetPack(pack: string): void
  /** Reads everything again. */
  reload(): Promise<void>
}

export function createDestinations({ basePath, log }: { basePath: string; log: Log }): Destinations {
  let ofSite = new Map<string, Destination>()
  const ofPacks = new Map<string, { folder: string; destinations: ReadonlyMap<string, Destination> }>()

  async function read(folder: string, pack: string | undefined) {
    const problems: FileProblem[] = []
    const found = new Map<string, Destination>()
    const listed = (await listFiles(folder, FOLDER, problems)) ?? []
    const names = listed.filter((name) => /\.(ya?ml|json)$/.test(name))
    if (names.length > MAX_FILES) {
      problems.push({ file: FOLDER, message: `the folder has more than ${MAX_FILES} files; the rest is left out` })
    }
    for (const name of names.slice(0, MAX_FILES)) {
      const file = `${FOLDER}/${name}`
      const text = await readMetadataFile(folder, file, MAX_FILE_BYTES)
      if ('problem' in text) {
        problems.push(text.problem)
        continue
      }
      const { value, lineOf } = text.document
      const outcome = readDestination(value, file, pack)
      if ('problems' in outcome) {
        problems.push(...outcome.problems.map(({ path, message }) => problemAt(file, path, lineOf, message)))
        continue
      }
      const { destination } = outcome
      if (destination === undefined) continue
      const same = found.get(destination.name)
      if (same !== undefined) {
        problems.push({ file, key: 'name', message: `"${destination.name}" is defined in ${same.file} already` })
        continue
      }
      problems.push(...destination.warnings.map((message): FileProblem => ({ file, message, isWarning: true })))
      found.set(destination.name, destination)
    }
    return { found, problems }
  }

  async function readSite(): Promise<void> {
    const { found, problems } = await read(basePath, undefined)
    ofSite = found
    for (const problem of problems) {
      const say = problem.isWarning === true ? log.warning : log.error
      const why = problem.isWarning === true ? '' : '; the destination cannot be used'
      say('notifications.definition', `${describeProblem(problem)}${why}`, { file: join(basePath, problem.file) })
    }
  }

  async function usePack(pack: string, folder: string): Promise<FileProblem[]> {
    const { found, problems } = await read(folder, pack)
    if (found.size === 0) ofPacks.delete(pack)
    else if (ofPacks.has(pack) || ofPacks.size < MAX_PACKS) ofPacks.set(pack, { folder, destinations: found })
    return problems
  }

  const inPack = (name: string): Destination | undefined => {
    const dot = name.indexOf('.')
    return dot < 0 ? undefined : ofPacks.get(name.slice(0, dot))?.destinations.get(name)
  }

  return {
    find: (name, pack) =>
      ofSite.get(name) ?? inPack(name) ?? (pack === undefined ? undefined : inPack(`${pack}.${name}`)),
    list: () =>
      [...ofSite.values(), ...[...ofPacks.values()].flatMap(({ destinations }) => [...destinations.values()])].toSorted(
        (a, b) => (a.name < b.name ? -1 : 1),
      ),
    readSite,
    usePack,
    forgetPack: (pack) => void ofPacks.delete(pack),
    async reload() {
      await readSite()
      for (const [pack, { folder }] of ofPacks) {
        for (const problem of await usePack(pack, folder)) {
          log.warning('notifications.definition', `Pack "${pack}": ${describeProblem(problem)}`, { pack })
        }
      }
    },
  }
}
