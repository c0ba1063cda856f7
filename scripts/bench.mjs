/** `npm run bench [-- <arguments>]`: installs and builds what is needed, then measures on the pinned Node. */
import { join } from 'node:path'
import { build } from './build.mjs'
import { ensureInstalled, findNode, main, root, run } from './lib.mjs'

await main(async () => {
  await ensureInstalled()
  await build()
  return run(findNode(), [join(root, 'tests', 'bench', 'index.ts'), ...process.argv.slice(2)])
})
