/** A made-up StackStorm installation as an operator finds it: the folders of a machine and the exports beside them. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'

export interface Installation {
  path: string
  /** Writes a file, with its folders: text and bytes as they are, anything else as JSON. @returns its path */
  readonly write: (name: string, content: unknown) => string
  readonly link: (name: string, target: string) => void
  remove(): void
}

export const PACKS = 'opt/stackstorm/packs'
export const CONFIGS = 'opt/stackstorm/configs'

/** An empty one. */
export function makeInstallation(): Installation {
  const folder: TemporaryFolder = makeFolder()
  const prepared = (name: string): string => {
    mkdirSync(dirname(join(folder.path, name)), { recursive: true })
    return name
  }
  return {
    path: folder.path,
    write: (name, content) => folder.write(prepared(name), content),
    link: (name, target) => symlinkSync(target, join(folder.path, prepared(name))),
    remove: () => folder.remove(),
  }
}

/** The manifest of a pack. */
export const manifest = (name: string): string =>
  `name: ${name}\ndescription: A pack for tests.\nversion: 1.0.0\nauthor: Somebody\nemail: somebody@example.org\n`

/** A pack with an action, a workflow, a rule for a trigger of another pack, and a configuration. */
export function writeGreetings({ write }: Installation): void {
  const at = (name: string): string => `${PACKS}/greetings/${name}`
  write(at('pack.yaml'), manifest('greetings'))
  write(at('config.schema.yaml'), 'name:\n  type: string\n  required: true\n')
  write(`${CONFIGS}/greetings.yaml`, 'name: world\n')
  write(
    at('actions/greet.yaml'),
    'name: greet\nrunner_type: local-shell-cmd\nparameters:\n  cmd:\n    default: echo hello {{ config_context.name }}\n    immutable: true\n',
  )
  write(at('actions/both.yaml'), 'name: both\nrunner_type: orquesta\nentry_point: workflows/both.yaml\n')
  write(at('actions/workflows/both.yaml'), 'version: 1.0\ntasks:\n  one:\n    action: greetings.greet\n')
  write(
    at('rules/on_visit.yaml'),
    'name: on_visit\nenabled: true\ntrigger:\n  type: visits.visit\ncriteria: {}\naction:\n  ref: greetings.greet\n',
  )
  write(`${PACKS}/visits/pack.yaml`, manifest('visits'))
  write(`${PACKS}/visits/triggers/visit.yaml`, 'name: visit\npayload_schema:\n  type: object\n')
}
