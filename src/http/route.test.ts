/** CVE-2023-48222 and CVE-2026-22683: an endpoint that forgets to say who may use it does not compile. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeFolder } from '../../tests/helpers/folders.ts'

const root = join(import.meta.dirname, '..', '..')

/** Each on a line of its own; the ones that are wrong say so. */
const routes = [
  `{ permission: 'public' }, // right`,
  `{ permission: 'authenticated' }, // right`,
  `{ permission: 'administrator' }, // right`,
  `{ permission: 'action_list' }, // right`,
  `{ permission: 'action_view', resource: () => ({ uid: 'action:a:b' }) }, // right`,
  `{ permission: 'action_execute', resourceOfBody: () => ({ uid: 'action:a:b' }) }, // right`,
  `{ permission: 'webhook_send', resource: () => ({ uid: 'webhook:a' }), provesItself: () => true }, // right`,
  `{ permission: 'webhook_send', provesItself: () => true }, // wrong: to which webhook?`,
  `{ permission: 'authenticated', provesItself: () => true }, // wrong: what may somebody who proves nothing do?`,
  `{ provesItself: () => true }, // wrong: says nothing of the others`,
  `{}, // wrong: says nothing`,
  `{ permission: undefined }, // wrong: says nothing`,
  `{ permission: 'everybody' }, // wrong: there is no such permission`,
  `{ permission: 'action_view' }, // wrong: on which action?`,
  `{ permission: 'execution_stop' }, // wrong: of which execution?`,
]

test('CVE-2023-48222 a route without a declared permission does not compile', () => {
  const folder = makeFolder()
  try {
    const source = join(folder.path, 'routes.ts')
    writeFileSync(join(folder.path, 'package.json'), '{"type": "module"}')
    const lines = routes.map((route) => `export const r${routes.indexOf(route)}: Guard[] = [${route}\n]`)
    writeFileSync(source, `import type { Guard } from '${join(root, 'src/http/route.ts')}'\n${lines.join('\n')}\n`)
    writeFileSync(
      join(folder.path, 'tsconfig.json'),
      JSON.stringify({
        extends: join(root, 'tsconfig.json'),
        compilerOptions: { rootDir: '/', typeRoots: [join(root, 'node_modules', '@types')] },
        include: [source],
      }),
    )
    const { stdout } = spawnSync(
      process.execPath,
      [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '--noEmit', '-p', folder.path],
      { encoding: 'utf8' },
    )
    const failing = new Set([...stdout.matchAll(/routes\.ts\((\d+),/g)].map(([, line]) => Number(line)))
    const wrong = routes.map((route, i) => ({ route, fails: failing.has(2 + 2 * i) }))
    expect(wrong).toEqual(routes.map((route) => ({ route, fails: route.includes('// wrong') })))
  } finally {
    folder.remove()
  }
})
