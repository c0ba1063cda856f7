/** Where a pack can be installed from: what the words of a user name, before anything is fetched (contract 02, 2.8). */
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packSourceUnusable } from '../../core/errors.ts'
import { shown } from '../../lib/text/index.ts'

export type PackSource = {
  /** What the pack is called unless its manifest says so. */
  name: string
  /** As it was given, for messages. */
  text: string
} & (
  | { kind: 'shipped' | 'folder' | 'archive'; path: string; version?: string }
  /** `url` is safe as an argument of git; `ref` is a branch, a tag, or a commit. */
  | { kind: 'git'; url: string; ref?: string }
)

const MAX_CHARS = 4096
const archivePattern = /\.(tar|tar\.gz|tgz)$/
/** What git takes as a branch, tag or commit, and nothing that it takes for an option or a range. */
const refPattern = /^[A-Za-z0-9_](?:[A-Za-z0-9_+-]|[./](?![./]))*$/
/** Whether a text names a revision of a repository, and nothing else, as an argument of git. */
export function isGitRef(text: string): boolean {
  return text.length <= 255 && refPattern.test(text)
}
const hostPattern = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)$/
/** References, and older names with capitals, dots and dashes. */
const namePattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/
const scpPattern = /^([A-Za-z0-9_][A-Za-z0-9_.-]*)@([^@:/\s]+):([^:\s-][^\s]*)$/

/**
 * Finds the repository of a pack that an index has. `mayBeLocal`: whoever wrote the index may name places on this machine.
 * `why`: the end of a sentence, when there is none.
 */
export type FindRepository = (ref: string) => Promise<{ url: string; mayBeLocal: boolean } | { why: string }>

/**
 * Understands a source; a file or folder of this machine must be there.
 *
 * @param shipped name → folder of the packs that come with the program and can be installed by name
 * @param findRepository asked for other names
 * @throws PACK_SOURCE_UNUSABLE
 */
export async function parseSource(
  text: string,
  shipped: ReadonlyMap<string, string>,
  findRepository: FindRepository,
): Promise<PackSource> {
  const refused = (why: string): Error => packSourceUnusable(text, why)
  if (text === '' || text.length > MAX_CHARS) throw refused(`it must have 1 to ${MAX_CHARS} characters`)
  // eslint-disable-next-line no-control-regex
  if (/[\0-\x1f\x7f]/.test(text)) throw refused('it must not contain control characters')
  if (text.startsWith('-')) throw refused('it must not begin with "-"')

  const whole = await parseLocal(text, text, undefined)
  if (whole !== undefined) return whole
  const at = text.lastIndexOf('=')
  const [place, ref] = at > 0 ? [text.slice(0, at), text.slice(at + 1)] : [text, undefined]
  if (ref !== undefined && !refPattern.test(ref)) {
    throw refused('what follows "=" must be a version, branch, tag or commit')
  }
  const folder = shipped.get(place)
  if (folder !== undefined) {
    return { kind: 'shipped', path: folder, name: place, text, ...(ref === undefined ? {} : { version: ref }) }
  }
  const local = await parseLocal(place, text, ref)
  if (local !== undefined) return local
  if (namePattern.test(place)) {
    const found = await findRepository(place)
    if ('why' in found)
      throw refused(`there is no pack of this name to install: ${found.why}. ${sourceAdvice(shipped)}`)
    const named = { name: place, text, ...(ref === undefined ? {} : { ref }) }
    const refusedUrl = (why: string): Error => refused(`its index gives the address ${shown(found.url)}: ${why}`)
    if (!found.mayBeLocal && localPath(found.url) !== undefined)
      throw refusedUrl('only an index in a file of the server may name a place on the server')
    const repository = await parseLocal(found.url, text, ref)
    if (repository !== undefined) return { ...repository, name: place }
    return { kind: 'git', url: parseGitUrl(found.url, refusedUrl, shipped), ...named }
  }
  const url = parseGitUrl(place, refused, shipped)
  return { kind: 'git', url, name: repositoryName(url), text, ...(ref === undefined ? {} : { ref }) }
}

/** A folder, archive or repository of this machine; undefined when there is none at this place. */
async function parseLocal(place: string, text: string, ref: string | undefined): Promise<PackSource | undefined> {
  const path = localPath(place)
  if (path === undefined) return undefined
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) return undefined
  const name = basename(path)
  const version = ref === undefined ? {} : { version: ref }
  if (found.isFile()) {
    if (!archivePattern.test(name)) {
      throw packSourceUnusable(text, 'this file is no archive that can be read; use .tar, .tar.gz or .tgz')
    }
    return { kind: 'archive', path, name: name.replace(archivePattern, ''), text, ...version }
  }
  if (!found.isDirectory()) throw packSourceUnusable(text, 'this is neither a folder nor a file')
  // A work tree is taken as it is on the disk, unless a version of it is asked for.
  const isRepository = (await exists(`${path}/HEAD`)) && (await exists(`${path}/objects`))
  if (isRepository || (ref !== undefined && (await exists(`${path}/.git`)))) {
    const url = `file://${encodeURI(path)}`
    return { kind: 'git', url, name: repositoryName(path), text, ...(ref === undefined ? {} : { ref }) }
  }
  return { kind: 'folder', path, name, text, ...version }
}

function localPath(place: string): string | undefined {
  if (place.startsWith('/')) return place
  if (!place.startsWith('file:///')) return undefined
  try {
    return fileURLToPath(place)
  } catch {
    return undefined
  }
}

export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}

/** @throws what `refused` makes */
function parseGitUrl(place: string, refused: (why: string) => Error, shipped: ReadonlyMap<string, string>): string {
  const scp = scpPattern.exec(place)
  if (scp !== null && !place.includes('://')) {
    if (!hostPattern.test(scp[2] ?? '')) throw refused('its host is none')
    return place
  }
  if (localPath(place) !== undefined) throw refused('there is no such folder or file on the machine of the server')
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(place) ?? []
  if (scheme === undefined) {
    throw refused(`it is no name, path or address. ${sourceAdvice(shipped)}`)
  }
  if (scheme !== 'https' && scheme !== 'ssh') {
    throw refused(`repositories are fetched over https:// and ssh://, not over ${scheme}:`)
  }
  const url = URL.canParse(place) ? new URL(place) : undefined
  if (url === undefined || !hostPattern.test(url.hostname) || /\s/.test(place)) throw refused('it is no address')
  if (url.password !== '') {
    throw refused(
      'a password must not stand in the address, where everybody who sees the execution reads it; let a credential ' +
        "helper of git give it to the server's account",
    )
  }
  if (/^-|%/.test(url.username) || url.pathname.length < 2) throw refused('it is no address of a repository')
  return place
}

function sourceAdvice(shipped: ReadonlyMap<string, string>): string {
  return (
    `Give the name of a pack (svc includes: ${[...shipped.keys()].join(', ')}), the absolute path of a folder or ` +
    'archive on the machine of the server, or the address of a git repository (https://, ssh://, git@host:path)'
  )
}

/** The last part of the address, which is usually the name of the pack. */
function repositoryName(place: string): string {
  const [, last = ''] = /([^/:]+?)\/*$/.exec(place.replace(/\/*$/, '').replace(/(\/)?\.git$/, '')) ?? []
  return last.replace(/^(?:stackstorm|svc)-/, '')
}
