/** Copies of the project to try the scripts on, and programs run to their end. */
import { spawn, type SpawnOptions } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

const CONTENT = [
  'package.json',
  'package-lock.json',
  '.npmrc',
  'tsconfig.json',
  'vitest.config.ts',
  'svc.conf.example',
  'scripts',
  'src',
  'migrations',
  'web',
  'tests/helpers',
]

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** A new temporary folder, named by its real path. */
export function makeFolder(): string {
  return mkdtempSync(join(tmpdir(), 'svc-packaging-'))
}

/** What a fresh clone has; `installed` adds the dependencies of this project. */
export function copyProject(options: { installed: boolean }): string {
  const folder = makeFolder()
  for (const name of CONTENT) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  if (options.installed) {
    // Links one by one, because what is written to node_modules itself must stay in the copy.
    mkdirSync(join(folder, 'node_modules'))
    cpSync(join(ROOT, 'node_modules/.package-lock.json'), join(folder, 'node_modules/.package-lock.json'))
    for (const name of readdirSync(join(ROOT, 'node_modules'))) {
      if (name !== '.package-lock.json')
        symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
    }
  }
  return folder
}

/** Runs a program to its end and keeps what it prints. */
export function runToEnd(file: string, args: string[], options: SpawnOptions = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}
