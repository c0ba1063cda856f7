/** Directories that cannot be used: one sentence names the option, the path, the reason and what to do. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestApp, withApp } from '../helpers/app.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'

let folder: TemporaryFolder
let basePath = ''
let file = ''

beforeEach(() => {
  folder = makeFolder()
  basePath = join(folder.path, 'data')
  file = join(folder.path, 'file')
  mkdirSync(basePath)
  writeFileSync(file, '')
})
afterEach(() => folder.remove())

function linesWith(log: string, event: string): string[] {
  return log.split('\n').filter((line) => line.includes(`event=${event}`))
}

const access = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }

describe('a directory that cannot be used', () => {
  test.each<[what: string, prepare: () => Record<string, string>, event: string, words: () => string]>([
    [
      'packs_base_paths is missing',
      () => ({ 'content.packs_base_paths': join(folder.path, 'nowhere') }),
      'packs.unreadable',
      () => `content.packs_base_paths: ${folder.path}/nowhere cannot be used: it does not exist. Create the directory`,
    ],
    [
      'packs_base_paths is a file',
      () => ({ 'content.packs_base_paths': file }),
      'packs.unreadable',
      () => `content.packs_base_paths: ${file} cannot be used: it is a file, not a directory. Create`,
    ],
    [
      'system_packs_base_path is below a file',
      () => ({ 'content.system_packs_base_path': `${file}/packs` }),
      'packs.unreadable',
      () => `${file}/packs cannot be used: ${file} is a file, not a directory. Create`,
    ],
    [
      'packs is a link to nothing',
      () => {
        symlinkSync(join(folder.path, 'nowhere'), join(basePath, 'packs'))
        return {}
      },
      'packs.unreadable',
      () => `${basePath}/packs cannot be used: it is a symbolic link to nothing. Create`,
    ],
    [
      'configs is a file',
      () => {
        writeFileSync(join(basePath, 'configs'), '')
        return {}
      },
      'packs.unreadable',
      () => `configs in system.base_path: ${basePath}/configs cannot be used: it is a file, not a directory`,
    ],
    [
      'the backup directory is below a file',
      () => ({ 'backup.directory': `${file}/backups` }),
      'backup.failed',
      () => `backup.directory: ${file}/backups cannot be used: ${file} is a file, not a directory. Create`,
    ],
  ])('is logged once, and the server starts: %s', async (_what, prepare, event, words) => {
    await withApp({ basePath, settings: prepare() }, async (app) => {
      await app.reload()
      await app.reload()
      expect(linesWith(app.log(), event)).toEqual([expect.stringContaining(words())])
      expect(app.log()).not.toMatch(/ E[A-Z]{3,}:| at async /)
      expect((await app.call('GET', '/v1/packs')).body).toMatchObject({ 0: { ref: 'core' } })
    })
  })

  test('is logged again after it was usable', async () => {
    const packs = join(folder.path, 'more')
    await withApp({ basePath, settings: { 'content.packs_base_paths': packs } }, async (app) => {
      mkdirSync(join(packs, 'mine'), { recursive: true })
      writeFileSync(
        join(packs, 'mine', 'pack.yaml'),
        'ref: mine\nname: mine\ndescription: Mine\nversion: 1.0.0\nauthor: me\n',
      )
      await app.reload()
      expect((await app.call('GET', '/v1/packs/mine')).status).toBe(200)
      expect(linesWith(app.log(), 'packs.unreadable')).toHaveLength(1)
      rmSync(packs, { recursive: true })
      await app.reload()
      expect(linesWith(app.log(), 'packs.unreadable')).toHaveLength(2)
    })
  })

  test.each<[what: string, prepare: () => Record<string, string>, words: () => string]>([
    [
      'the database is below a file',
      () => ({ 'database.path': `${file}/svc.db` }),
      () =>
        `database.path (svc.db in system.base_path unless given): ${file}/svc.db cannot be used: ${file} is a file, not a directory`,
    ],
    [
      'the database is a directory',
      () => ({ 'database.path': folder.path }),
      () => `${folder.path} cannot be used: it is a directory, not a file`,
    ],
    [
      'rbac is a file',
      () => {
        writeFileSync(join(basePath, 'rbac'), '')
        return access
      },
      () =>
        `rbac in system.base_path: ${basePath}/rbac cannot be used: it is a file, not a directory. Make it a directory`,
    ],
  ])('stops the start where nothing works without it: %s', async (_what, prepare, words) => {
    const failure = await createTestApp({ basePath, settings: prepare() }).catch((error: unknown) => error)
    expect(failure).toMatchObject({ message: expect.stringContaining(words()) as string })
    expect((failure as Error).message).not.toMatch(/E[A-Z]{3,}:/)
  })
})
