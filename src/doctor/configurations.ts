/** Configurations of packs. */
import { shown } from '../lib/text/index.ts'
import { ok, skipped, warning, type HealthCheck } from './check.ts'

const MAX_SHOWN = 20

export const configurations: HealthCheck = {
  name: 'configurations',
  async run({ running, configProblems }) {
    if (running === undefined) return [skipped('Skipped, because no server runs that could say what it uses.')]
    const found = await configProblems()
    if (found === undefined) return [skipped('Skipped, because the server does not answer.')]
    if (found.length === 0) return [ok('Every configuration of a pack is used.')]
    const remedy =
      'Correct the file; svc registers the pack again within seconds, or run: svc pack register --packs <pack>'
    const results = found
      .slice(0, MAX_SHOWN)
      .map(({ pack, problem }) =>
        warning(`The configuration of the pack "${shown(pack)}" has a problem: ${problem}.`, remedy),
      )
    const more = found.length - MAX_SHOWN
    if (more > 0) results.push(warning(`${more} more packs have the same problem.`, 'See svc pack list.'))
    return results
  },
}
