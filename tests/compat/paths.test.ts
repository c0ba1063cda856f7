import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { entryPointHere, pathHere } from '../../src/core/compat/index.ts'
import { withApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { runToEnd } from '../helpers/server.ts'

it.each([
  ['/opt/stackstorm/packs/web/lib/x.sh', '/base/packs/web/lib/x.sh'],
  ['/opt/stackstorm/virtualenvs/web/bin/python', '/base/virtualenvs/web/bin/python'],
  ['/opt/stackstorm/configs/web.yaml', '/base/configs/web.yaml'],
  ['/opt/stackstorm/packs', '/base/packs'],
  ['/opt/stackstorm/packs/../../../etc/passwd', undefined],
  ['/opt/stackstorm/packsx/web', undefined],
  ['/opt/stackstorm/st2/bin/python', undefined],
  ['/usr/bin/python', undefined],
  ['opt/stackstorm/packs/web', undefined],
])('%s', (path, expected) => {
  expect(pathHere('/base', path)).toBe(expected)
})

it('an entry point below the actions of its own pack is relative to them', () => {
  expect(entryPointHere('web', '/opt/stackstorm/packs/web/actions/a/b.sh')).toBe('a/b.sh')
  for (const other of ['/opt/stackstorm/packs/db/actions/b.sh', '/opt/stackstorm/packs/web/actions/../x', 'a/b.sh', ''])
    expect(entryPointHere('web', other)).toBe(other)
})

it.each([
  [true, 'succeeded', "said it's by", 'python it'],
  [false, 'failed', '/opt/stackstorm/virtualenvs/moved/bin/shell', '/opt/stackstorm/st2/bin/python3'],
] as const)('scripts name interpreters in /opt/stackstorm: on is %s', async (isOn, expected, text, byPython) => {
  const folder = makeFolder()
  const files: Record<string, string> = {
    'pack.yaml': 'name: moved\ndescription: x\nversion: 1.0.0\nauthor: us\nemail: us@x.org\n',
    'actions/moved.yaml':
      'name: moved\nrunner_type: local-shell-script\nentry_point: /opt/stackstorm/packs/moved/actions/moved.sh\nparameters: {word: {type: string, position: 0}}\n',
    'actions/snake.yaml':
      'name: snake\nrunner_type: local-shell-script\nentry_point: snake.py\nparameters: {word: {type: string, position: 0}}\n',
    'actions/snake.py': '#!/opt/stackstorm/st2/bin/python3\nimport sys\nprint("python " + sys.argv[1])\n',
    'actions/moved.sh': '#!/opt/stackstorm/virtualenvs/moved/bin/shell -u\necho "said $1 by $0"\n',
  }
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder.path, 'packs', 'moved', name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const bin = join(folder.path, 'virtualenvs', 'moved', 'bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync('/bin/sh', join(bin, 'shell'))
  chmodSync(join(folder.path, 'packs', 'moved', 'actions', 'moved.sh'), 0o755)
  await withApp({ basePath: folder.path, settings: { 'compat.stackstorm': isOn ? 'True' : 'False' } }, async (app) => {
    await app.call('POST', '/v1/packs/register', { packs: ['moved'] })
    const { status, result } = await runToEnd(app, { word: "it's" }, { action: 'moved.moved' })
    expect([status, JSON.stringify(result)]).toEqual([expected, expect.stringContaining(text)])
    const snake = await runToEnd(app, { word: 'it' }, { action: 'moved.snake' })
    expect([snake.status, JSON.stringify(snake.result)]).toEqual([expected, expect.stringContaining(byPython)])
  })
  folder.remove()
})
