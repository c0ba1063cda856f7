import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../../tests/helpers/folders.ts'
import { installedNames, requiredNames, withIncluded } from './requirements.ts'

let folder: TemporaryFolder

beforeAll(() => {
  folder = makeFolder()
})
afterAll(() => folder.remove())

test.each<[string, string[]]>([
  ['requests', ['requests']],
  ['requests==2.31 --hash=sha256:abc', ['requests']],
  ['Foo.Bar_baz[extra, other] >= 1.0, <2 # comment', ['foo-bar-baz']],
  ['a\nb ~= 1\n\n# c\nd!=1\r\na', ['a', 'b', 'd']],
  ['name @ https://example.com/name.tar.gz', ['name']],
  ['git+https://example.com/x.git@v1#egg=the_name', ['the-name']],
  ['-e git+https://example.com/x.git#egg=other&subdirectory=y', ['other']],
  ['git+https://example.com/x.git', []],
  ['./wheels/tiny_test_wheel-1.0-py3-none-any.whl', ['tiny-test-wheel']],
  ['./folder', []],
  ['--index-url https://example.com\n-i https://example.com', []],
  ['futures; python_version < "3"', []],
  ["typing ; python_version >= '3.5'", ['typing']],
  ['a; python_version == "3.11"\nb; python_version != "3.11"\nc; python_version <= "3.10"', ['a']],
  ['a; sys_platform == "win32"', []],
  ['long\\\n==1', ['long']],
])('%j names %j', (text, expected) => {
  expect(requiredNames([['requirements.txt', text]], '3.11.7')).toEqual(expected)
})

test('files that are included count, also in circles; those that only limit versions do not', async () => {
  writeFileSync(
    join(folder.path, 'more.txt'),
    'b\n-r requirements.txt\n-c limits.txt\n-r none.txt\n-r ../out.txt\n-r pipe\n',
  )
  writeFileSync(join(folder.path, 'limits.txt'), 'c==1\n')
  execFileSync('mkfifo', [join(folder.path, 'pipe')])
  const files = await withIncluded('a\n-r more.txt\n', folder.path)
  expect(files.map(([path, text]) => [path, text === null])).toEqual([
    ['requirements.txt', false],
    ['more.txt', false],
    ['limits.txt', false],
    ['none.txt', true],
    ['pipe', true],
  ])
  expect(requiredNames(files, '3.11.7')).toEqual(['a', 'b'])
})

test('what is installed: in the environment, and of the machine where it shares that', async () => {
  const place = join(folder.path, 'venv')
  const system = join(folder.path, 'system')
  for (const name of ['Tiny_Wheel-1.0.dist-info', 'old-2-py3.11.egg-info', 'dev.egg-link'])
    mkdirSync(join(place, 'lib', 'python3.11', 'site-packages', name), { recursive: true })
  mkdirSync(join(system, 'six-1.0.dist-info'), { recursive: true })
  const ask = async (): Promise<string[]> => [
    ...(await installedNames(place, () => Promise.resolve([system, '/none']))),
  ]
  writeFileSync(join(place, 'pyvenv.cfg'), 'include-system-site-packages = false\n')
  expect((await ask()).toSorted()).toEqual(['dev', 'old', 'tiny-wheel'])
  writeFileSync(join(place, 'pyvenv.cfg'), 'include-system-site-packages = true\n')
  expect(await ask()).toContain('six')
  expect([...(await installedNames(join(folder.path, 'no'), () => Promise.resolve([system])))]).toEqual(['six'])
})
