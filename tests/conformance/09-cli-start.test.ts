/** Issue 6 "start-up": what a command of the client loads before it does anything. Counted, since times are no facts. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { executable, projectRoot } from '../helpers/server.ts'

interface Loaded {
  /** Files of `dist/`: each costs a search, a look at it and a linking. */
  files: string[]
  /** Of all these files: they are read and compiled. */
  bytes: number
  /** What they were made of, such as `src/cli/output/print.ts` or `node_modules/commander/lib/help.js`. */
  sources: string[]
  /** Built-in modules, such as `https` or `internal/deps/undici/undici`. */
  builtIn: string[]
}

const watcher = `
  import { registerHooks } from 'node:module'
  const urls = []
  registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
  process.on('exit', () => {
    const builtIn = process.moduleLoadList.map((name) => name.replace(/^\\w+ /, ''))
    process.getBuiltinModule('node:fs').writeSync(2, '\\n' + JSON.stringify({ urls, builtIn }))
  })`

function load(...args: string[]): Loaded {
  const hook = `data:text/javascript,${encodeURIComponent(watcher)}`
  const { stderr } = spawnSync(process.execPath, ['--import', hook, executable, ...args], {
    env: { HOME: '/nowhere', SVC_API_URL: 'http://127.0.0.1:1/v1' },
    encoding: 'utf8',
  })
  const { urls, builtIn } = JSON.parse(stderr.slice(stderr.lastIndexOf('\n'))) as { urls: string[]; builtIn: string[] }
  const files = urls.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url))
  const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0)
  return { files: files.map((file) => basename(file)), bytes, sources: files.flatMap(sourcesOf), builtIn }
}

function sourcesOf(file: string): string[] {
  const { sources } = JSON.parse(readFileSync(`${file}.map`, 'utf8')) as { sources: string[] }
  return sources.map((source) =>
    join(file, '..', source)
      .replace(`${projectRoot}/`, '')
      .replace(/^.*(?=node_modules\/)/, ''),
  )
}

const fileOf = (command: string): string => `src/cli/commands/${command}.ts`

/** The file of `dist/` and all that it imports, and what these import. */
function importedBy(file: string, when: 'at once' | 'at any time'): Set<string> {
  const pattern = when === 'at once' ? /\bfrom"(\.\/[^"]+)"|\bimport"(\.\/[^"]+)"/g : /"(\.\/[\w.-]+\.js)"/g
  const found = new Set([file])
  for (const each of found) {
    for (const [, from, bare] of readFileSync(each, 'utf8').matchAll(pattern)) {
      const path = join(each, '..', from ?? bare ?? '')
      if (existsSync(path)) found.add(path)
    }
  }
  return found
}

/** Takes longer to load than all of a command. */
const heavy = [
  'https',
  'tls',
  'crypto',
  'child_process',
  'worker_threads',
  'internal/deps/undici/undici',
  'zlib',
  'dns',
  'dgram',
  'readline',
]

describe('09.0 start-up', () => {
  it('09.0 help is made without the code of any command, and without what reaches a server', () => {
    const { files, bytes, sources, builtIn } = load('--help')
    expect(sources).toContain('src/cli/program.ts')
    expect(sources.filter((source) => /^src\/cli\/commands\/(?!index\.ts)/.test(source))).toEqual([])
    expect(sources.filter((source) => source.startsWith('node_modules/') && !/\/commander\//.test(source))).toEqual([])
    expect(builtIn).toContain('path')
    expect(builtIn.filter((name) => ['http', ...heavy].includes(name))).toEqual([])
    expect(files.length).toBeLessThan(30)
    expect(bytes).toBeLessThan(160_000)
  })

  it('09.0 a command that asks a server over HTTP loads nothing that HTTP does not need', () => {
    const { files, bytes, sources, builtIn } = load('execution', 'list')
    expect(sources).toContain('src/cli/commands/execution.ts')
    expect(sources.filter((source) => source.startsWith('node_modules/') && !/\/commander\//.test(source))).toEqual([])
    expect(builtIn).toContain('http')
    expect(builtIn.filter((name) => heavy.includes(name))).toEqual([])
    expect(files.length).toBeLessThan(60)
    expect(bytes).toBeLessThan(290_000)
  })

  it('09.0 no command of the client loads the server', () => {
    const known = new Map<string, string[]>()
    for (const file of importedBy(executable, 'at any time')) {
      for (const source of sourcesOf(file).filter((each) => /^src\/cli\/commands\/(?!index\.ts)/.test(each))) {
        known.set(source, [...importedBy(file, 'at once')].flatMap(sourcesOf))
      }
    }
    expect([...known.keys()]).toEqual(expect.arrayContaining(['run', 'pack', 'key', 'auth'].map(fileOf)))
    for (const [command, sources] of known) {
      if (command === fileOf('serve')) continue
      const server = sources.filter((source) =>
        /^src\/(?:app\.ts|(?:bus|config|db|http|modules|queue|runners)\/)/.test(source),
      )
      const packages = sources.filter((source) => /^node_modules\/(?!commander\/|js-yaml\/)/.test(source))
      expect({ command, server, packages }).toEqual({ command, server: [], packages: [] })
    }
    // What is looked for is there when it is the server that is asked.
    expect(known.get(fileOf('serve'))).toContain('src/config/options.ts')
  })
})
