/** What can be said of a pack before it is registered: how much there is of each kind, and which old names it uses. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readContainedFile } from '../lib/files/index.ts'

/** Files of a pack that are searched. */
const MAX_FILES = 20_000
const MAX_FILE_BYTES = 1_048_576
const MAX_BYTES = 67_108_864
const MAX_DEPTH = 6
/** Names kept of each pack. */
const MAX_NAMES = 20

export const packKinds = ['actions', 'rules', 'sensors', 'triggers', 'aliases', 'policies'] as const
export type PackKind = (typeof packKinds)[number]

export interface PackScan {
  /** Metadata files of each kind. */
  files: Record<PackKind, number>
  /** Names of StackStorm in the pack, such as `core.st2.webhook`, each with a file that has it. */
  oldNames: { name: string; file: string }[]
  /** Modules that `requirements.txt` asks for. */
  requirements: string[]
}

/**
 * Names that svc takes only with `[compat] stackstorm = True`. Python modules are not among them: svc has those under
 * their old names always.
 */
const oldName = new RegExp(
  [
    String.raw`\bcore\.st2\.[a-zA-Z_.]+`,
    String.raw`\bst2kv\b`,
    String.raw`\bctx\(\)\.st2\b`,
    String.raw`\bctx\((["']?)st2\1\)`,
    String.raw`\b[Ss]t2-(?:[Aa]pi-[Kk]ey|[Tt]race-[Tt]ag|[Cc]ontext)\b`,
    // Events of the stream; `st2.execution` alone would be an action of the pack st2.
    String.raw`\bst2\.[a-z.]+__[a-z]+`,
    String.raw`\bwebhooks/st2\b`,
    // Variables are in capitals: `st2_url` is a name of the pack's own.
    String.raw`\bST2_[A-Z][A-Z_]+`,
  ].join('|'),
  'g',
)

const searched = /\.(?:ya?ml|json|py|sh|rb|js|pl|ps1)$/

export async function scanPack(folder: string): Promise<PackScan> {
  const files = { actions: 0, rules: 0, sensors: 0, triggers: 0, aliases: 0, policies: 0 }
  const found = new Map<string, string>()
  let count = 0
  let bytes = 0

  async function search(path: string): Promise<void> {
    if (found.size >= MAX_NAMES || bytes > MAX_BYTES) return
    const file = await readContainedFile(folder, path, MAX_FILE_BYTES)
    if ('problem' in file) return
    bytes += file.text.length
    for (const [name] of file.text.matchAll(oldName)) {
      if (!found.has(name) && found.size < MAX_NAMES) found.set(name, path)
    }
  }

  async function walk(path: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH || count > MAX_FILES) return
    const entries = await readdir(join(folder, path), { withFileTypes: true }).catch(() => [])
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entry.name.startsWith('.')) continue
      const at = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.isDirectory()) {
        if (!['tests', 'node_modules', '__pycache__', 'virtualenv'].includes(entry.name)) await walk(at, depth + 1)
        continue
      }
      count += 1
      if (count > MAX_FILES) return
      const kind = packKinds.find((name) => name === path)
      if (kind !== undefined && /\.(?:ya?ml|json)$/.test(entry.name)) files[kind] += 1
      if (searched.test(entry.name)) await search(at)
    }
  }

  await walk('', 0)
  return {
    files,
    oldNames: [...found].map(([name, file]) => ({ name, file })),
    requirements: await readRequirements(folder),
  }
}

async function readRequirements(folder: string): Promise<string[]> {
  const file = await readContainedFile(folder, 'requirements.txt', MAX_FILE_BYTES)
  if ('problem' in file) return []
  return file.text
    .split(/\r?\n/)
    .map((line) => line.replace(/(?:^|\s)#.*$/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('-'))
    .slice(0, MAX_NAMES)
}
