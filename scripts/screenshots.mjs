/** `npm run screenshots`: recreates the screenshots of docs/web.md with a real server in a real browser. */
import { join } from 'node:path'
import { build } from './build.mjs'
import { ensureInstalled, findNode, main, root, run } from './lib.mjs'

await main(async () => {
  await ensureInstalled()
  await build()
  return run(findNode(), [join(root, 'tests', 'web', 'screenshots.ts'), ...process.argv.slice(2)])
})
