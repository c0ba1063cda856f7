/** Python environments of packs. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { virtualenvFailure } from '../core/virtualenv-files.ts'
import { readJson } from '../lib/json/index.ts'
import { shown } from '../lib/text/index.ts'
import { ok, warning, type HealthCheck, type Result } from './check.ts'

const MAX_SHOWN = 20
/** Characters of one problem. */
const MAX_TEXT = 600

export const environments: HealthCheck = {
  name: 'environments',
  async run({ loaded: { config } }) {
    const folder = join(config.system.base_path, 'virtualenvs')
    // Without any the folder is missing.
    const packs = await readdir(folder).catch((): string[] => [])
    const found: Result[] = []
    for (const pack of packs.toSorted()) {
      const problem = await problemIn(join(folder, pack, virtualenvFailure))
      if (problem === undefined) continue
      found.push(
        warning(
          `Actions of the pack "${shown(pack)}" fail: ${problem}`,
          `Correct its requirements.txt, or run: svc run packs.setup_virtualenv packs=${pack}`,
        ),
      )
    }
    if (found.length === 0) return [ok('No Python environment of a pack has failed.')]
    const more = found.length - MAX_SHOWN
    if (more <= 0) return found
    return [
      ...found.slice(0, MAX_SHOWN),
      warning(`${more} more packs have the same problem.`, 'See svc pack get <pack>.'),
    ]
  },
}

async function problemIn(path: string): Promise<string | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch {
    // Most have none.
    return undefined
  }
  const { problem, at } = readJson(text) as { problem: unknown; at: unknown } // as svc writes it
  // pip says it in several lines.
  const words = String(problem).replace(/\s+/g, ' ')
  return `${words.length > MAX_TEXT ? `${words.slice(0, MAX_TEXT)}…` : words} (${String(at)})`
}
