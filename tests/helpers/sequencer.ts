/** Which test files begin first: those that take longest, so that in the end nobody waits for one that began last. */
import { basename } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Minutes each, the longest first; for others the size of the file says enough. */
const longest = [
  'kill',
  'stubborn',
  '09-scenarios',
  '11-matrix',
  '09-cli-access',
  '01-slow-down',
  'launcher',
  'cascade',
  'start',
  '05-timers',
  'scripts',
  '09-cli-events',
  'security-identity',
  '09-cli',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => placeOf(a) - placeOf(b))
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = longest.indexOf(basename(moduleId, '.test.ts'))
  return place === -1 ? longest.length : place
}
