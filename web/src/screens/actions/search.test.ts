import { describe, expect, test } from 'vitest'
import { rowsFor, searchable, type ActionListEntry } from './search.ts'

function action(ref: string, more: Partial<ActionListEntry> = {}): ActionListEntry {
  const [pack = '', name = ''] = ref.split('.')
  return { ref, pack, name, description: '', enabled: true, tags: [], ...more }
}

const actions = searchable([
  action('linux.local', { description: 'Not of the core' }),
  action('core.remote', { description: 'Runs a command on other hosts' }),
  action('core.local', { description: 'Runs a command on the LOCAL host' }),
  action('core.local_sudo'),
  action('web.deploy', { tags: [{ name: 'env', value: 'Production' }] }),
])

function refs(query: string): string[] {
  return rowsFor(actions, query).map((row) => (row.kind === 'action' ? row.action.ref : `${row.pack} ${row.count}`))
}

describe('the list of actions', () => {
  test('is by pack', () => {
    expect(refs('  ')).toEqual([
      'core 3',
      'core.local',
      'core.local_sudo',
      'core.remote',
      'linux 1',
      'linux.local',
      'web 1',
      'web.deploy',
    ])
  })

  test.each([
    ['local', ['core.local', 'linux.local', 'core.local_sudo']],
    ['CORE.LOCAL', ['core.local', 'core.local_sudo']],
    ['host command', ['core.local', 'core.remote']],
    ['production', ['web.deploy']],
    ['env', ['web.deploy']],
    ['sudo core', ['core.local_sudo']],
    ['nothing', []],
  ])('for %j has %j', (query, expected) => {
    expect(refs(query)).toEqual(expected)
  })

  test('of thousands is searched at once', () => {
    const fastest = (count: number): number => {
      const many = searchable(Array.from({ length: count }, (_, i) => action(`pack${i % 50}.action${i}`)))
      const times = Array.from({ length: 20 }, (_, i) => {
        const start = performance.now()
        expect(rowsFor(many, `action${i * 20}`).length).toBeGreaterThan(0)
        return performance.now() - start
      })
      return Math.min(...times)
    }
    // Ten times as long for ten times as many; a search that grows with the square takes a hundred times as long.
    expect(fastest(5000)).toBeLessThan(40 * fastest(500))
  })
})
