/** Names of what scaffolding creates (contract 02, 2.8): they are names of files, and words of commands. */
import { exitCodes } from '../exit-codes.ts'
import { CliFailure } from '../failures.ts'
import { printable } from '../output/print.ts'

const MAX_NAME_CHARS = 100

/** Packs that come with svc, or that it makes. */
export const shippedPacks: readonly string[] = ['chatops', 'core', 'default', 'examples', 'linux', 'packs']

/** The name of a pack that exists. @throws CliFailure (2) */
function checkForm(name: string): string {
  if (/^[a-z0-9_]+$/.test(name) && name.length <= MAX_NAME_CHARS) return name
  throw new CliFailure(
    `"${printable(name)}" cannot be the name of a pack. Use lower case letters, digits and "_", at most ${MAX_NAME_CHARS} characters.`,
    exitCodes.usage,
  )
}

/** The name of a new pack. @throws CliFailure (2) */
export function checkPackName(name: string): string {
  checkForm(name)
  if (name === '_global' || shippedPacks.includes(name)) {
    throw new CliFailure(`The pack name "${name}" belongs to svc. Choose another one.`, exitCodes.usage)
  }
  return name
}

/** The name of a pack from any text, such as the name of a folder. @param otherwise when nothing of it can be in a name */
export function packNameFrom(text: string, otherwise: string): string {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .slice(0, MAX_NAME_CHARS)
    .replaceAll(/^_+|_+$/g, '')
  return name === '' || shippedPacks.includes(name) ? otherwise : name
}

export interface ContentRef {
  pack: string
  name: string
}

/** `<pack>.<name>`. @param kind for the message, such as `an action` @throws CliFailure (2) */
export function readContentRef(ref: string, kind: string): ContentRef {
  const [, pack = '', name = ''] = /^([^.]*)\.([A-Za-z0-9_][A-Za-z0-9_-]*)$/.exec(ref) ?? []
  if (name === '' || name.length > MAX_NAME_CHARS) {
    throw new CliFailure(
      `"${printable(ref)}" cannot be ${kind}. Write <pack>.<name>; a name has letters, digits, "_" and "-", at most ${MAX_NAME_CHARS} characters.`,
      exitCodes.usage,
    )
  }
  return { pack: checkForm(pack), name }
}
