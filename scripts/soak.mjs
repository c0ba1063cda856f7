/** `npm run soak [-- --minutes 20] [-- --seed 1]`: installs and builds what is needed, then runs the soak on the pinned Node. */
import { join } from 'node:path'
import { build } from './build.mjs'
import { ensureInstalled, findNode, main, root, run } from './lib.mjs'

await main(async () => {
  await ensureInstalled()
  await build()
  return run(findNode(), [join(root, 'tests', 'soak', 'index.ts'), ...process.argv.slice(2)])
})
