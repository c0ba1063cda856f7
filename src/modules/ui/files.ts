/** The files that the build made of `web/`. */
import { locatePart, readPart } from '../../core/bundle.ts'

/** As `scripts/build.mjs` has compressed them, the shortest first. */
export const encodings = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const

export type Encoding = (typeof encodings)[number]['name']

export interface Files {
  /**
   * Each is read once, and its readers share the bytes.
   *
   * @param name `index.html`, or the name of a file beside it in `ui/`
   * @param encoding undefined: as it is
   * @returns undefined when there is none of this name
   */
  read(name: string, encoding: Encoding | undefined): Promise<Buffer | undefined>
}

/** What the build names files; nothing that leads elsewhere. */
const NAME = /^(?=.{1,100}$)[\w-]+(?:\.[\w-]+)*\.(?:css|html|js|svg|txt)$/

export function createFiles(): Files {
  // One entry per file: missing files are not cached.
  const known = new Map<string, Promise<Buffer>>()
  return {
    async read(name, encoding) {
      if (!NAME.test(name)) return undefined
      const ending = encodings.find((one) => one.name === encoding)?.ending ?? ''
      const path = `${name === 'index.html' ? '' : 'ui/'}${name}${ending}`
      const content =
        known.get(path) ?? readPart(locatePart(`../../../dist/web/${path}`, `./web/${path}`, import.meta.url))
      known.set(path, content)
      try {
        return await content
      } catch (error) {
        known.delete(path)
        if (isMissing(error)) return undefined
        throw error
      }
    },
  }
}

/** In a folder, and inside of the single executable. */
function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ENOENT' || code === 'ERR_SINGLE_EXECUTABLE_APPLICATION_ASSET_NOT_FOUND'
}
