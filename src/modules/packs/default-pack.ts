/** The pack `default`: where what people make through the API is put (contract 02, 2.8 "Default start-up"). */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defaultPack } from '../../core/pack-content.ts'
import { syncFolder, syncTree } from '../../lib/files/index.ts'
import { hasCode } from '../../lib/process/index.ts'
import { manifestFile } from './read.ts'

const manifest = `---
ref: ${defaultPack}
name: ${defaultPack}
description: What is made through the API without naming another pack.
version: 0.1.0
author: svc
`

/** Makes it unless there is something of its name. */
export async function makeDefaultPack(packsFolder: string): Promise<void> {
  const folder = join(packsFolder, defaultPack)
  try {
    await mkdir(folder, { mode: 0o755 })
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return
    throw error
  }
  await mkdir(join(folder, 'actions'), { mode: 0o755 })
  await writeFile(join(folder, manifestFile), manifest)
  await syncTree(folder)
  await syncFolder(packsFolder)
}
