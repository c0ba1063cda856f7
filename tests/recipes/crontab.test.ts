/** docs/recipes/crontab.md, command by command. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withApp } from '../helpers/app.ts'
import { blocksOf } from '../helpers/doc-blocks.ts'
import { stepsOf } from '../helpers/console-session.ts'
import { makeFolder } from '../helpers/folders.ts'
import { openShell, recipe } from './support.ts'

const PAGE = 'crontab.md'

test('a crontab moves over as the page says', async () => {
  const folder = makeFolder()
  try {
    // Where the command line finds it without a configuration.
    const basePath = join(folder.path, 'svc_data')
    mkdirSync(join(basePath, 'packs'), { recursive: true })
    await withApp({ basePath }, async ({ urls }) => {
      const env = { SVC_API_URL: urls.api, SVC_AUTH_URL: urls.auth, SVC_STREAM_URL: urls.stream, TZ: 'UTC' }
      const shell = openShell(folder.path, env, {})
      const steps = blocksOf(recipe(PAGE)).flatMap(({ language, text }) =>
        language === 'console' ? stepsOf(text) : [],
      )
      expect(steps.length).toBeGreaterThan(5)
      for (const step of steps) {
        const { printed, expected } = await shell.play(step)
        expect(printed).toBe(expected)
      }
    })
  } finally {
    folder.remove()
  }
})
